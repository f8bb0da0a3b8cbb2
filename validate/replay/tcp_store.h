/// \file
/// The store over TCP: rank 0 serves it from a thread, and every rank keeps one connection. When a
/// rank dies its connection closes, so the other ranks know at once. A token keeps out processes
/// that reach this port by mistake. It is no authentication: like torch's TCPStore, the store is
/// meant for a cluster's network and for the loopback.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/net/identity.h"
#include "base/result.h"
#include "base/units.h"

#include "validate/replay/store.h"

namespace foreshard::replay {

struct TcpOptions {
  std::string address{};  ///< Address of rank 0; listen_on says who can reach it.
  std::uint16_t port = 0;
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  JobKey job{};
  Seconds patience = 60_s;  ///< How long to wait for rank 0.
};

/// \return kIo if rank 0 cannot be reached or the port is in use; kInvalidInput if rank 0 refuses
///     this rank (another number of ranks, another job or token, a rank that has already joined).
Result<std::unique_ptr<Store>> open_tcp_store(const TcpOptions& options);

using net::Environment;
using net::Identity;
using net::Rendezvous;

/// How the ranks of a job find each other.
struct RendezvousOptions {
  /// Folder in which rank 0 writes a file with its address; empty: the environment has the address.
  std::string folder{};
  JobKey job{};
  Seconds patience = 60_s;
};

/// Opens the store that all ranks of the job share. Its address comes from the launcher's
/// environment or from a file in a folder that the user names.
/// \return errors of open_tcp_store and rendezvous_from.
Result<std::unique_ptr<Store>> open_store(const Environment& environment, const Identity& identity,
                                          const RendezvousOptions& options);

}  // namespace foreshard::replay
