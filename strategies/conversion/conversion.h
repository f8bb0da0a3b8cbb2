/// \file
/// Conversion of sharded parameters between two phases: plans which bytes every device sends to
/// which other device, so that parameters and optimizer states move from one strategy's layout to
/// another's.
///
/// Per tensor, each target slice is assembled from the source slices that intersect it. Data that a
/// device already has stay there; else a replica on the same node sends them, else a replica
/// elsewhere; among equals the one that has sent least so far over all tensors, so that replicas
/// share the sending. A device that is down sends nothing; data that only such devices had are
/// listed as lost. Padding (parameters.h) is not moved.
///
/// All tensors move in one exchange. Requirements (README.md): R1.1 to R1.5, conversion when the
/// device count or the strategy changes; R0.4, slices assembled from the intersecting ones; R4.9,
/// elastic runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/page.h"
#include "base/record/forward.h"
#include "base/result.h"
#include "base/units.h"

#include "strategies/cost/cost_model.h"
#include "strategies/parallelism/parameters.h"
#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"

namespace foreshard::conversion {

/// The tensors of one phase and the devices of their ranks.
struct Phase {
  std::vector<PlacedTensor> tensors{};
  std::vector<std::int32_t> device_of_rank{};  ///< Empty: rank r is on device r. Distinct.
};

struct Options {
  std::vector<std::int32_t> down{};  ///< Devices that no longer hold anything.
  /// device -> node, so that data come from the same node where possible (R1.5). Empty: all devices
  /// are on one node.
  std::vector<std::int32_t> node_of_device{};
};

struct DeviceTraffic {
  std::int32_t device = 0;
  std::int64_t before = 0;  ///< Bytes of its slices in the first phase.
  std::int64_t after = 0;   ///< Bytes of its slices in the second phase.
  /// Bytes of slices that are the same in both phases, of which no second copy is made.
  std::int64_t unchanged = 0;
  std::int64_t stays = 0;  ///< Bytes of its new slices that are in its old slices already.
  std::int64_t sent = 0;
  std::int64_t received = 0;

  /// Bytes on the device while new slices are assembled beside the old ones.
  std::int64_t peak() const { return before + after - unchanged; }
};

/// Bytes that one device sends to another, over all tensors.
struct Transfer {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int64_t bytes = 0;
  auto operator<=>(const Transfer&) const = default;
};

/// Elements that no device has any longer.
struct LostRegion {
  std::string tensor;
  Box box;
};

struct Conversion {
  std::vector<Transfer> transfers{};     ///< Ascending; from != to, bytes > 0.
  std::vector<DeviceTraffic> devices{};  ///< Devices with slices before or after, ascending.
  std::int64_t tensors = 0;              ///< Tensors of the second phase.
  std::int64_t messages = 0;             ///< Number of boxes sent.
  std::int64_t bytes_moved = 0;
  std::int64_t bytes_staying = 0;
  std::int64_t bytes_dropped = 0;  ///< Bytes of whole tensors that the second phase does not have.
  std::int64_t tensors_dropped = 0;
  std::vector<LostRegion> lost{};  ///< If not empty, the remaining data are planned all the same.
};

/// \return kInvalidInput if the second phase has a tensor that the first lacks or has with another
///     type or unpadded shape.
Result<Conversion> plan_conversion(const Phase& from, const Phase& to, const Options& options = {});

/// The exchange as a valid Program on the devices that send or receive; empty if nothing moves.
std::optional<program::Program> program_of(const Conversion& conversion, std::string name);

// Reports of a conversion on a cluster: time, load of links and devices, memory. As text for
// people; as JSON (schema "foreshard.reshard_strategy/1") and CSV (a line per device) for
// programs.

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

std::string to_text(const Explanation& explanation, const Paper& paper = {});
std::string to_json(const Explanation& explanation);
const record::Record<Explanation>& record_of(const Explanation*);
std::string to_csv(const Explanation& explanation);

}  // namespace foreshard::conversion
