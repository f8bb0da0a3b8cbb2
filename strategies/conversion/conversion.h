/// \file
/// Conversion of sharded parameters between two phases (R1): which bytes every device sends to
/// which other one, so that parameters and optimizer state move from the layout of one strategy to
/// that of another.
///
/// Per tensor (R0.4): each target slice is put together from the source slices that intersect it.
/// What a device has already stays; else a replica on the same node sends it, else one elsewhere;
/// among equals the one that has sent least so far over all tensors, so that replicas share the
/// sending. A device that is down sends nothing; what only such devices had is named as lost.
/// Padding (parameters.h) is not moved.
///
/// All tensors move in one exchange. Requirement: R1.1 to R1.5, R0.4, R4.9.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/parallelism/parameters.h"
#include "strategies/program/ir/program.h"

namespace foreshard::conversion {

/// Tensors and where their ranks are.
struct Phase {
  std::vector<PlacedTensor> tensors{};
  std::vector<std::int32_t> device_of_rank{};  ///< Empty: rank r is on device r. Distinct.
};

struct Options {
  std::vector<std::int32_t> down{};            ///< Devices that hold nothing any more.
  std::vector<std::int32_t> node_of_device{};  ///< Empty: all on one (R1.5).
};

struct DeviceTraffic {
  std::int32_t device = 0;
  std::int64_t before = 0;     ///< Bytes of its slices in the first phase.
  std::int64_t after = 0;      ///< ... in the second.
  std::int64_t unchanged = 0;  ///< ... of slices that are the same in both: no second copy of them.
  std::int64_t stays = 0;      ///< Bytes of new slices that the device has in old ones.
  std::int64_t sent = 0;
  std::int64_t received = 0;

  /// What it holds while new slices are put together beside the old ones.
  std::int64_t peak() const { return before + after - unchanged; }
};

/// Bytes between two devices, of all tensors together.
struct Transfer {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int64_t bytes = 0;
  auto operator<=>(const Transfer&) const = default;
};

/// Elements that no device has any more.
struct Loss {
  std::string tensor;
  Box box;
};

struct Conversion {
  std::vector<Transfer> transfers{};     ///< Ascending; from != to, bytes > 0.
  std::vector<DeviceTraffic> devices{};  ///< Those with slices before or after, ascending.
  std::int64_t tensors = 0;              ///< Of the second phase.
  std::int64_t messages = 0;             ///< Boxes that are sent, one by one.
  std::int64_t bytes_moved = 0;
  std::int64_t bytes_staying = 0;
  std::int64_t bytes_dropped = 0;  ///< Of tensors that the second phase does without, whole.
  std::int64_t tensors_dropped = 0;
  std::vector<Loss> lost{};  ///< Not empty: what there is of the rest is planned all the same.
};

/// \return kInvalidInput if the second phase has a tensor that the first has not, or with another
///     type or unpadded shape there.
Result<Conversion> plan_conversion(const Phase& from, const Phase& to, const Options& options = {});

/// The exchange as a Program on those devices; nothing if nothing moves. It verifies.
std::optional<program::Program> program_of(const Conversion& conversion, std::string name);

}  // namespace foreshard::conversion
