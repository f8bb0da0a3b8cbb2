/// \file
/// The server of the TCP store: one thread in rank 0's process, one connection per rank. Messages
/// from processes that are not ranks of the job are refused and change nothing.
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
  std::string address{};   ///< Address on which it listens (socket.h).
  std::uint16_t port = 0;  ///< Port on which it listens; 0: any free one.
  std::int32_t ranks = 1;
  JobKey job{};
};

class TcpServer {
 public:
  static Result<std::unique_ptr<TcpServer>> start(const ServerOptions& options);
  /// Waits (some seconds at most) until every rank that joined has left, then stops.
  ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  TcpServer() = default;

  std::uint16_t port_ = 0;
  net::Descriptor stop_{};  // An eventfd, written to when the server has to end.
  std::thread thread_{};
};

}  // namespace foreshard::replay::internal
