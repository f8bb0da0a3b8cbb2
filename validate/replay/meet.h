/// \file
/// How the ranks of a job find each other: the store that its launcher's environment, or a folder
/// that the user names, leads to.
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
using net::Meeting;

struct MeetOptions {
  /// Where rank 0 says in a file how to reach it; empty: the environment says that.
  std::string folder{};
  JobKey job{};
  Seconds patience = 60_s;
};

/// \return as open_tcp_store and meeting_from.
Result<std::unique_ptr<Store>> open_store(const Environment& environment, const Identity& identity,
                                          const MeetOptions& options);

}  // namespace foreshard::replay
