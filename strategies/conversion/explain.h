/// \file
/// What a conversion takes on a cluster, and in words: time, load of links and devices, memory.
/// Text for people; JSON (schema "foreshard.reshard_strategy/1") and CSV (a line per device) for
/// programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/conversion/conversion.h"
#include "strategies/cost/cost_model.h"
#include "topology/cluster_view.h"

namespace foreshard::conversion {

inline constexpr std::string_view kConversionSchema = "foreshard.reshard_strategy/1";

/// Transfers that are simulated at most.
inline constexpr std::int64_t kMostSimulated = 250'000;

struct Explanation {
  std::string model{};
  std::string from{};  ///< "tensor 8 x pipeline 16 x data 8 on 1024 devices".
  std::string to{};
  std::string cluster{};
  std::vector<std::int32_t> down{};
  Conversion conversion{};

  std::optional<Seconds> closed_form{};  ///< The exchange on idle links; nothing if none.
  std::optional<Seconds> simulated{};    ///< Nothing above kMostSimulated pairs of devices.
  struct LinkUse {
    std::string from{};
    std::string to{};
    Bytes bytes{};
    Seconds time{};  ///< Those bytes at the link's bandwidth.
  };
  std::vector<LinkUse> links{};  ///< The busiest (by time) first.

  std::int32_t fullest_device = 0;  ///< By what part of its memory is taken.
  Bytes peak_memory{};              ///< Of that device: old and new slices side by side.
  Bytes memory_capacity{};          ///< Of that device.
};

/// \return kInfeasible if two devices that have to talk have no route, or if something is lost: the
///     message names it.
Result<Explanation> explain(Conversion conversion, const CostModel& cost,
                            const ClusterView& cluster);

std::string to_text(const Explanation& explanation);
std::string to_json(const Explanation& explanation);
std::string to_csv(const Explanation& explanation);

}  // namespace foreshard::conversion
