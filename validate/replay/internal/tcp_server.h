/// \file
/// The server of the TCP store: one thread in rank 0's process, one connection per rank. Messages
/// from processes that are not ranks of the job are refused and change nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/net/socket.h"
#include "base/result.h"

#include "validate/replay/store.h"

namespace foreshard::replay::internal {

/// The messages of the TCP store. A frame is: size of the rest (4 bytes, little endian), kind (1),
/// number of the request (8), then its fields, each a size (4) and that many bytes.
///
///     rank -> server   kHello  magic, rank, ranks, options,      answered by kWelcome or kRefused
///                              token, who
///                      kSet    key, value                        kDone or kRefused
///                      kGet    key                               kValue, once it is set
///                      kLook   key                               kValue or kDone (not set)
///                      kGiveUp why                               nothing
///                      kLeave                                    nothing: the rank is through
///     server -> rank   kEnded  message                           a rank ended early (number 0)
enum class FrameKind : std::uint8_t {
  kHello = 1,
  kSet,
  kGet,
  kLook,
  kGiveUp,
  kLeave,
  kWelcome,
  kRefused,
  kDone,
  kValue,
  kEnded,
};

inline constexpr std::string_view kMagic = "foreshard-replay/2";
inline constexpr std::size_t kFrameHead = 4;
/// Bytes of kind and number.
inline constexpr std::size_t kFrameFixed = 9;

struct Frame {
  FrameKind kind = FrameKind::kHello;
  std::uint64_t number = 0;
  std::vector<std::string> fields{};
};

std::string encode(const Frame& frame);
/// How many bytes follow a head, which is the first kFrameHead bytes.
std::size_t size_after_head(std::string_view head);
/// The frame in the bytes after the head; nothing if sizes do not add up or the kind is unknown.
std::optional<Frame> decode(std::string_view rest);

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
