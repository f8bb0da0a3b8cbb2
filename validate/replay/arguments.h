/// \file
/// The command line of foreshard-replay. It has its own small parser, because a bare cluster has no
/// library for that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace foreshard::replay {

struct Arguments {
  bool help = false;
  bool version = false;
  std::string program{};  ///< Path of the Program's JSON.
  bool host = false;      ///< Replay on processors instead of GPUs.
  std::string output{};   ///< Path of the measurement; empty: none.
  bool verify = false;
  bool check = false;  ///< Do only the static check.
  std::int64_t warmup = 2;
  std::int64_t repeats = 10;
  std::optional<double> until{};
  std::int64_t most_repeats = 200;
  std::optional<Seconds> lasting{};  ///< --for
  Seconds watchdog = 60_s;
  std::optional<std::int32_t> as_rank{};
  std::string arrivals{};
  bool shared = false;
  std::string rendezvous{};  ///< Folder in which the ranks meet (tcp_store.h).
  struct Hang {
    std::int32_t rank = 0;
    std::int64_t instance = 0;
  };
  std::optional<Hang> hang{};
};

/// \param words  the command line without the program's name.
/// \return kInvalidInput; the message names the option, what was found and what is legal.
Result<Arguments> arguments_from(const std::vector<std::string>& words);

/// The text that --help prints.
std::string help_text();

}  // namespace foreshard::replay
