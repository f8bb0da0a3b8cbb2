/// \file
/// The store over TCP: rank 0 serves it from a thread, every rank keeps one connection. A rank that
/// dies takes its connection along, so the others know at once. A token keeps out what came to this
/// port by mistake. It is no authentication: the store is meant for the network of a cluster, as
/// torch's TCPStore is, and for the loopback.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"

#include "validate/replay/store.h"

namespace foreshard::replay {

struct TcpOptions {
  std::string address{};  ///< Of rank 0; see listen_on for who can come.
  std::uint16_t port = 0;
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  JobKey job{};
  Seconds patience = 60_s;  ///< For rank 0 to be there.
};

/// \return kIo if rank 0 cannot be reached, or the port is in use; kInvalidInput where rank 0
///     refuses this rank (not as many ranks, another job or token, a rank that is there already).
Result<std::unique_ptr<Store>> open_tcp_store(const TcpOptions& options);

/// As rank 0, on a free port, which is told to `publish` before anything is waited for.
Result<std::unique_ptr<Store>> serve_tcp_store(
    TcpOptions options, const std::function<Status(std::uint16_t port)>& publish);

}  // namespace foreshard::replay
