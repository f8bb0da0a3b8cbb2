// Messages to and from rank 0 of a job. The server is base/net/server.cc; callers are the ranks of
// teams (base/team) and of replays (validate/replay/tcp_store.cc).
#include "base/net/message.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/net/faults.h"
#include "base/net/identity.h"
#include "base/quantity.h"

namespace foreshard::net {
namespace {

// Time between two looks for rank 0.
constexpr auto kPause = std::chrono::milliseconds(20);
// Longest wait for an answer to a hello. Rank 0 answers at once, unless strangers fill its queue.
constexpr Seconds kAnswer = 10_s;

void put(std::string& out, std::size_t size) {
  for (std::size_t i = 0; i < kSizeBytes; ++i) out += static_cast<char>((size >> (8 * i)) & 0xff);
}

}  // namespace

std::string encode(const Message& words) {
  std::string out(kSizeBytes, '\0');
  for (const std::string& word : words) {
    put(out, word.size());
    out += word;
  }
  std::string head;
  put(head, out.size() - kSizeBytes);
  return out.replace(0, kSizeBytes, head);
}

std::size_t size_in(std::string_view bytes) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < kSizeBytes; ++i)
    size |= std::size_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return size;
}

std::optional<Message> decode(std::string_view bytes) {
  Message words;
  while (!bytes.empty()) {
    if (bytes.size() < kSizeBytes) return std::nullopt;
    const std::size_t size = size_in(bytes);
    bytes.remove_prefix(kSizeBytes);
    if (bytes.size() < size) return std::nullopt;
    words.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return words;
}

bool send(int socket, const Message& words) {
  return send_all(socket, encode(words));
}

std::optional<Message> receive(int socket, std::size_t largest) {
  std::string head;
  if (!receive_all(socket, kSizeBytes, head)) return std::nullopt;
  const std::size_t size = size_in(head);
  std::string body;
  if (size > largest || !receive_all(socket, size, body)) return std::nullopt;
  return decode(body);
}

Result<std::optional<Greeted>> greet(const std::string& address, std::uint16_t port,
                                     const Message& hello, Seconds patience) {
  const auto end = after(patience);
  do {
    FORESHARD_ASSIGN(auto connection, connect_to(address, port, patience));
    if (send(connection.get(), hello) && has_sent(connection.get(), kAnswer)) {
      auto answer = receive(connection.get(), kLargestHello);
      if (!answer || answer->empty()) return std::optional<Greeted>();
      if (answer->size() == 2 && answer->front() == "refused") return bad(answer->back());
      if (answer->front() != "welcome") return std::optional<Greeted>();
      answer->erase(answer->begin());
      return std::optional(Greeted{std::move(connection), *std::move(answer)});
    }
    // It has closed the connection without a word: it makes place for others, or ends.
    std::this_thread::sleep_for(kPause);
  } while (Clock::now() < end);
  return std::optional<Greeted>();
}

Result<std::optional<Greeted>> greet_by_file(const std::filesystem::path& file, std::int32_t rank,
                                             const Message& hello, Seconds patience,
                                             const std::function<bool()>& is_over) {
  const auto end = after(patience);
  std::string why;
  do {
    if (const auto place = rank_zero_in(file)) {
      auto found = greet(place->address(), place->port, hello, 200_ms);
      if (found ? found->has_value() : found.error().code != Error::Code::kIo) return found;
      why = "nobody of its job is where " + file.string() + " says" +
            (found ? "" : " (" + found.error().message + ")") +
            (place->host.empty() ? "; if it runs on another host, give all ranks MASTER_ADDR, the "
                                   "name of rank 0's host"
                                 : "");
    }
    if (is_over && is_over()) return std::optional<Greeted>();
    std::this_thread::sleep_for(kPause);
  } while (Clock::now() < end);
  return io("rank " + std::to_string(rank) + " did not find rank 0 within " + format(patience) +
            ": " + (why.empty() ? "there is no " + file.string() : why));
}

}  // namespace foreshard::net
