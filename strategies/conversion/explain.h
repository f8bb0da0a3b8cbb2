/// \file
/// Reports of a conversion on a cluster: time, load of links and devices, memory. As text for
/// people; as JSON (schema "foreshard.reshard_strategy/1") and CSV (a line per device) for
/// programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/record/forward.h"
#include "base/result.h"
#include "base/units.h"

#include "strategies/conversion/conversion.h"
#include "strategies/cost/cost_model.h"
#include "topology/cluster_view.h"

namespace foreshard::conversion {

/// Most transfers that are simulated.
inline constexpr std::int64_t kMostSimulated = 250'000;

struct Explanation {
  std::string model{};
  std::string from{};  ///< "tensor 8 x pipeline 16 x data 8 on 1024 devices".
  std::string to{};
  std::string cluster{};
  std::vector<std::int32_t> down{};
  Conversion conversion{};

  /// Time of the exchange on idle links; empty if nothing moves.
  std::optional<Seconds> closed_form{};
  std::optional<Seconds> simulated{};  ///< Empty above kMostSimulated transfers.
  struct LinkUse {
    std::string from{};
    std::string to{};
    Bytes bytes{};
    Seconds time{};  ///< Time of these bytes at the link's bandwidth.
  };
  std::vector<LinkUse> links{};  ///< The busiest (by time) first.

  std::int32_t fullest_device = 0;  ///< The device with the largest fraction of its memory in use.
  Bytes peak_memory{};      ///< Peak memory of that device: old and new slices side by side.
  Bytes memory_capacity{};  ///< Memory of that device.
};

/// \return kInfeasible if two devices that have to communicate have no route, or if data are lost:
///     the message names them.
Result<Explanation> explain(Conversion conversion, const CostModel& cost,
                            const ClusterView& cluster);

std::string to_text(const Explanation& explanation);
std::string to_json(const Explanation& explanation);
const record::Record<Explanation>& record_of(const Explanation*);
std::string to_csv(const Explanation& explanation);

}  // namespace foreshard::conversion
