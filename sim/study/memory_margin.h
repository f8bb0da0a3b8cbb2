/// \file
/// The part of a device's memory that a strategy should leave free, because a predicted peak can be
/// too low. With h = the 90th percentile of measured / predicted peak (ParameterErrors::memory),
///
///     margin = 1 - 1 / h
///
/// is the part of the memory to keep free: a strategy that keeps it fits in nine cases of ten even
/// if it uses all the rest. The percentile is the framework's own (on NVIDIA's devices) if enough
/// of its peaks were measured (configs/intervals/parameter-errors.yaml), otherwise the percentile
/// of all frameworks.
/// Not modelled: the part of the driver and the communication library (the reserve) is as
/// uncertain.
#pragma once

#include <string>

#include "base/units.h"

#include "sim/simulate/prediction.h"
#include "sim/study/study.h"

namespace foreshard::study {

struct MemoryMargin {
  double part = 0;  ///< Margin as a part of each device's memory.
  /// Source of the margin: "memory_margin", "9 of 10 of 45 measured peaks are at most ...".
  std::string source;

  /// Whether a peak leaves less than the margin on a device with `memory` bytes, `capacity` of
  /// which are available for tensors.
  bool is_tight(Bytes peak, Bytes capacity, Bytes memory) const {
    return peak > capacity - part * memory;
  }
  /// Whether the device with the least room is tight.
  bool is_tight(const sim::Prediction& prediction) const;
};

/// The margin that the study states, or the one from measured peaks of its framework.
MemoryMargin memory_margin_of(const LoadedStudy& study);

}  // namespace foreshard::study
