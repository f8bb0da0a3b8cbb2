/// \file
/// The file in which rank 0 says where it listens, for ranks that see the same folder: "PORT HOST",
/// or "PORT" where they are all on this host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace foreshard::net {

inline constexpr const char* kLoopback = "127.0.0.1";

struct RankZero {
  std::string host{};  ///< Empty: this host.
  std::uint16_t port = 0;

  /// The address at which this host reaches rank 0. A host reaches itself even where it cannot
  /// resolve the name that others use.
  std::string address() const;
};

/// What this host calls itself.
std::string own_name();

/// \return kIo as write_file.
Status write_rank_zero(const std::filesystem::path& file, const RankZero& place);

/// What rank 0 wrote; nothing if there is no such file. The file must be a regular file of this
/// user, since other users may write to the folder (to /tmp, for example).
std::optional<RankZero> rank_zero_in(const std::filesystem::path& file);

}  // namespace foreshard::net
