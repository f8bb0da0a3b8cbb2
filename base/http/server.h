/// \file
/// An HTTP server for the person at this machine: it listens on the loopback interface, and answers
/// those alone who know its link, which has a random token.
///
/// Whoever runs a process here may connect, and pages of other sites can make the browser do so. So
/// a request is answered only if
/// - its path begins with the token, which other sites and users do not know;
/// - its Host is this server: a name that somebody else's DNS points here is none;
/// - an Origin, where there is one, is this server's, too;
/// - it is GET, or POST of JSON within kMostBody.
///
/// Strangers cannot hold it up. A connection has one request, which must have come within
/// net::kPatience. At most net::kMostStrangers are open: where more come, the oldest that has sent
/// no such request must go, once net::kHurriedPatience is over. Where the system has no more files,
/// memory or threads for a connection, it waits or is closed. Nothing is read from disk for a path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foreshard::http {

/// Bytes of a request before its body.
inline constexpr std::size_t kMostHead = std::size_t{32} << 10;
inline constexpr std::size_t kMostBody = std::size_t{1} << 20;

/// Where an answer that comes piece by piece goes: server-sent events (WHATWG HTML, section 9.2).
class Events {
 public:
  virtual ~Events() = default;
  /// \param data  may have several lines.
  /// \return false where the client is gone.
  virtual bool send(std::string_view name, std::string_view data) = 0;
};

struct Request {
  std::string path;  ///< The path after the token: "" for the page itself, "simulate".
  bool is_post = false;
  std::string body;
  /// Whether the client has closed the connection; any thread may ask, often.
  std::function<bool()> is_gone;
};

struct Response {
  int status = 200;
  std::string type = "text/plain";
  std::string body = {};
  /// In place of a body: called once, on the connection's thread, until it returns.
  std::function<void(Events&)> events = {};
};

/// Called on a thread of its own for each request.
using Handler = std::function<Response(const Request&)>;

class Server {
 public:
  virtual ~Server() = default;
  /// "http://127.0.0.1:40123/TOKEN/"
  virtual const std::string& link() const = 0;

  /// \param port  0: any that is free.
  /// \return kIo where the port is in use or the system gives no thread; kUnsupported where the
  ///     program was built without libcpp-httplib.
  static Result<std::unique_ptr<Server>> start(std::uint16_t port, Handler handler);
};

}  // namespace foreshard::http
