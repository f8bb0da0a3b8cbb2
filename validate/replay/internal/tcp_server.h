/// \file
/// The server of the TCP store: one thread of rank 0's process, one connection per rank. Whatever
/// is sent to it by others than ranks of the job is refused and changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/net/socket.h"
#include "base/result.h"

#include "validate/replay/store.h"

namespace foreshard::replay::internal {

struct ServerOptions {
  std::string address{};   ///< Where it listens (socket.h).
  std::uint16_t port = 0;  ///< 0: any.
  std::int32_t ranks = 1;
  JobKey job{};
};

class TcpServer {
 public:
  static Result<std::unique_ptr<TcpServer>> start(const ServerOptions& options);
  /// Waits (some seconds at most) until every rank that came has left, then stops.
  ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  TcpServer() = default;

  std::uint16_t port_ = 0;
  net::Descriptor stop_{};  // An eventfd: written to when the server shall end.
  std::thread thread_{};
};

}  // namespace foreshard::replay::internal
