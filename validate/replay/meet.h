/// \file
/// How the ranks of a job find each other: they open a common store, whose address comes from the
/// launcher's environment or from a file in a folder that the user names.
#pragma once

#include <memory>
#include <string>

#include "base/net/identity.h"
#include "base/result.h"
#include "base/units.h"

#include "validate/replay/store.h"

namespace foreshard::replay {

using net::Environment;
using net::Identity;
using net::Rendezvous;

struct MeetOptions {
  /// Folder in which rank 0 writes a file with its address; empty: the environment has the address.
  std::string folder{};
  JobKey job{};
  Seconds patience = 60_s;
};

/// \return errors of open_tcp_store and rendezvous_from.
Result<std::unique_ptr<Store>> open_store(const Environment& environment, const Identity& identity,
                                          const MeetOptions& options);

}  // namespace foreshard::replay
