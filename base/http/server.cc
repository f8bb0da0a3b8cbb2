// The server of pages (server.h), and the only use of libcpp-httplib: it reads the request and
// writes the response. Sockets, threads and limits are here, because the library waits for slow
// clients with one of few threads each, and takes as many headers as come.
#include "base/http/server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <exception>
#include <httplib.h>
#include <list>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <utility>

#include "base/http/link.h"
#include "base/net/server.h"
#include "base/net/socket.h"

namespace foreshard::http {
namespace {

using net::Clock;

bool wait_until(int socket, short event, Clock::time_point end) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() < 0) return false;
    pollfd wait{socket, event, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(left.count()) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool may_try_again(int fault) {
  return fault == EAGAIN || fault == EWOULDBLOCK || fault == EINTR;
}

// A client's connection. The accepting thread owns it; its own thread serves it.
class Client final : public httplib::Stream {
 public:
  explicit Client(net::Descriptor socket) : socket_(std::move(socket)) {}

  // A client who may speak is not sent away for others.
  void admit(std::size_t body) {
    admitted = true;
    left_ = body;
  }
  void send_away() { ::shutdown(socket_.get(), SHUT_RDWR); }

  // Asked by every step of a simulation, so the system is asked at most every few milliseconds.
  bool is_gone() {
    constexpr auto kBetween = std::chrono::milliseconds(5);
    const Clock::rep now = Clock::now().time_since_epoch().count();
    Clock::rep next = ask_again_.load();
    if (gone || now < next ||
        !ask_again_.compare_exchange_strong(next, now + Clock::duration(kBetween).count()))
      return gone;
    char byte = 0;
    const ssize_t got = ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !may_try_again(errno))) gone = true;
    return gone;
  }

  // Closes after the client has: an answer to a request that was not read to its end would be lost
  // with what is left of it.
  void farewell() {
    constexpr std::size_t kMost = std::size_t{4} << 20;
    constexpr auto kLongest = std::chrono::seconds(1);
    ::shutdown(socket_.get(), SHUT_WR);
    const auto end = Clock::now() + kLongest;
    for (std::size_t taken = 0; taken < kMost && wait_until(socket_.get(), POLLIN, end);) {
      const ssize_t got = ::recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
      if (got == 0 || (got < 0 && !may_try_again(errno))) return;
      if (got > 0) taken += static_cast<std::size_t>(got);
    }
  }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_.get(); }

  ssize_t read(char* to, std::size_t size) override {
    if (begin_ == end_ && !fill()) return -1;
    const std::size_t given = std::min({size, end_ - begin_, left_});
    if (given == 0) return -1;
    std::memcpy(to, buffer_.data() + begin_, given);
    begin_ += given;
    left_ -= given;
    return static_cast<ssize_t>(given);
  }

  ssize_t write(const char* from, std::size_t size) override {
    const auto end = Clock::now() + net::kPatience;
    for (std::size_t sent = 0; sent < size;) {
      const ssize_t now = ::send(socket_.get(), from + sent, size - sent, MSG_NOSIGNAL);
      if (now > 0) sent += static_cast<std::size_t>(now);
      const bool full = now < 0 && may_try_again(errno);
      if (now < 0 && (!full || !wait_until(socket_.get(), POLLOUT, end))) return -1;
    }
    return static_cast<ssize_t>(size);
  }

  const Clock::time_point since = Clock::now();
  std::atomic<bool> admitted = false;
  std::atomic<bool> done = false;
  std::atomic<bool> gone = false;
  std::thread thread;

 private:
  bool fill() {
    for (;;) {
      if (!wait_until(socket_.get(), POLLIN, since + net::kPatience)) return false;
      const ssize_t got = ::recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
      if (got < 0 && may_try_again(errno)) continue;
      begin_ = 0;
      end_ = got > 0 ? static_cast<std::size_t>(got) : 0;
      return got > 0;
    }
  }

  net::Descriptor socket_;
  std::array<char, std::size_t{16} << 10> buffer_{};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t left_ = kMostHead;  // Bytes that may still be read.
  std::atomic<Clock::rep> ask_again_ = 0;
};

class SentEvents final : public Events {
 public:
  explicit SentEvents(httplib::DataSink& to) : to_(to) {}

  bool send(std::string_view name, std::string_view data) override {
    std::string text = "event: " + std::string(name) + "\n";
    for (std::size_t begin = 0; begin <= data.size();) {
      const std::size_t end = std::min(data.find('\n', begin), data.size());
      text += "data: " + std::string(data.substr(begin, end - begin)) + "\n";
      begin = end + 1;
    }
    text += "\n";
    return to_.write(text.data(), text.size());
  }

 private:
  httplib::DataSink& to_;
};

// Why a request is not answered, if it is not.
struct Refusal {
  int status;
  std::string message;
};

std::string header(const httplib::Request& request, const char* name) {
  return request.get_header_value(name);
}

std::optional<Refusal> fault_in_body(const httplib::Request& request) {
  if (!header(request, "Content-Type").starts_with("application/json"))
    return Refusal{415, "a request has JSON: Content-Type: application/json"};
  if (request.has_header("Content-Encoding") || request.has_header("Transfer-Encoding"))
    return Refusal{411, "a request comes as it is, with its Content-Length"};
  const std::string length = header(request, "Content-Length");
  std::uint64_t bytes = 0;
  const auto read = std::from_chars(length.data(), length.data() + length.size(), bytes);
  if (length.empty() || read.ec != std::errc() || read.ptr != length.data() + length.size())
    return Refusal{411, "a request has a Content-Length"};
  if (bytes > kMostBody) return Refusal{413, "a request has at most 1 MiB"};
  return std::nullopt;
}

std::optional<Refusal> fault_in(const httplib::Request& request, const Link& link) {
  if (request.get_header_value_count("Host") != 1 || !link.is_host(header(request, "Host")))
    return Refusal{403, "this server is 127.0.0.1 or localhost, under no other name"};
  if (request.has_header("Origin") && !link.is_origin(header(request, "Origin")))
    return Refusal{403, "pages of other sites are not answered"};
  if (!link.below_token(request.path))
    return Refusal{403, "use the whole link that foreshard serve printed, with its token"};
  if (request.method == "GET") return std::nullopt;
  if (request.method != "POST") return Refusal{405, "only GET and POST are answered"};
  return fault_in_body(request);
}

httplib::Headers headers_of_all() {
  return {{"Cache-Control", "no-store"},
          {"Content-Security-Policy",
           "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
           "connect-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; "
           "frame-ancestors 'none'"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Referrer-Policy", "no-referrer"},
          {"X-Content-Type-Options", "nosniff"}};
}

// The library's part: a request from a client to the handler and back.
class Protocol final : public httplib::Server {
 public:
  Protocol(int listening, Link link, http::Handler handler)
      : link_(std::move(link)), handler_(std::move(handler)) {
    svr_sock_ = listening;  // without it the library takes itself to be shutting down
    set_default_headers(headers_of_all());
    set_pre_routing_handler([this](const httplib::Request& asked, httplib::Response& to) {
      const auto fault = fault_in(asked, link_);
      if (!fault) {
        current_client->admit(kMostBody);
        return HandlerResponse::Unhandled;
      }
      to.status = fault->status;
      to.set_content(fault->message + "\n", "text/plain");
      return HandlerResponse::Handled;
    });
    const auto answered = [this](const httplib::Request& asked, httplib::Response& to) {
      answer(asked, to);
    };
    Get("/.*", answered);
    Post("/.*", answered);
  }

  void serve(Client& client) {
    current_client = &client;
    bool closed = false;
    process_request(client, true, closed, [](httplib::Request& request) {
      request.headers.erase("Accept-Encoding");  // what does not leave this host stays as it is
    });
  }

  const Link& link() const { return link_; }

 private:
  void answer(const httplib::Request& asked, httplib::Response& to) {
    Client& client = *current_client;
    http::Response response = handler_({.path = *link_.below_token(asked.path),
                                        .is_post = asked.method == "POST",
                                        .body = asked.body,
                                        .is_gone = [&client] { return client.is_gone(); }});
    to.status = response.status;
    if (!response.events) {
      to.set_content(response.body, response.type);
      return;
    }
    to.set_chunked_content_provider("text/event-stream", [events = std::move(response.events)](
                                                             std::size_t, httplib::DataSink& sink) {
      SentEvents sent(sink);
      events(sent);
      sink.done();
      return true;
    });
  }

  static thread_local Client* current_client;
  const Link link_;
  const http::Handler handler_;
};

thread_local Client* Protocol::current_client = nullptr;

class Listener final : public Server {
 public:
  Listener(net::Listening listening, Link link, Handler handler)
      : listening_(std::move(listening)),
        protocol_(listening_.socket.get(), std::move(link), std::move(handler)) {}
  ~Listener() override {
    stopping_ = true;
    constexpr std::uint64_t kOne = 1;
    [[maybe_unused]] const auto woken = ::write(stop_.get(), &kOne, sizeof kOne);
    if (thread_.joinable()) thread_.join();
    for (Client& client : clients_) client.send_away();
    for (Client& client : clients_) client.thread.join();
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  Status begin() {
    stop_ = net::Descriptor(::eventfd(0, EFD_CLOEXEC));
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      return Error{Error::Code::kIo, "the system gives no thread for the server"};
    }
    return {};
  }

  const std::string& link() const override { return protocol_.link().text(); }

 private:
  void run() {
    while (!stopping_) {
      pollfd wait[2] = {{listening_.socket.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      constexpr int kBetween = 100;  // ms, after which connections that ended are let go
      ::poll(wait, 2, clients_.empty() ? -1 : kBetween);
      clients_.remove_if([](Client& client) {
        if (client.done) client.thread.join();
        return client.done.load();
      });
      if (wait[0].revents != 0 && has_room()) accept();
    }
  }

  // Whether one more may come; makes room, or waits a little for it.
  bool has_room() {
    if (std::ssize(clients_) < net::kMostStrangers) return true;
    for (Client& client : clients_) {
      if (client.admitted || client.done) continue;
      if (Clock::now() - client.since >= net::kHurriedPatience) client.send_away();
      break;
    }
    pause();
    return false;
  }

  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

  void accept() {
    net::Descriptor socket(
        ::accept4(listening_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return may_try_again(errno) ? void() : pause();
    try {
      Client& client = clients_.emplace_back(std::move(socket));
      client.thread = std::thread([this, &client] { serve(client); });
    } catch (const std::system_error&) {
      clients_.pop_back();  // it is told by the end of its connection
      pause();
    }
  }

  void serve(Client& client) {
    try {
      protocol_.serve(client);
    } catch (const std::exception&) {
      client.gone = true;  // the system gave no memory: this connection alone ends
    }
    client.farewell();
    client.done = true;
  }

  const net::Listening listening_;
  Protocol protocol_;
  net::Descriptor stop_;
  std::atomic<bool> stopping_ = false;
  std::list<Client> clients_;  // In the order in which they came.
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(std::uint16_t port, Handler handler) {
  FORESHARD_ASSIGN(auto listening, net::listen_on("127.0.0.1", port, "--port"));
  FORESHARD_ASSIGN(auto link, Link::of(listening.port));
  auto server =
      std::make_unique<Listener>(std::move(listening), std::move(link), std::move(handler));
  FORESHARD_TRY(server->begin());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace foreshard::http
