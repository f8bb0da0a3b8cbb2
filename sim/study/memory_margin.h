/// \file
/// How much of a device's memory a strategy should leave free, because a predicted peak can be too
/// low: with h = the 90th percentile of measured / predicted peak (ParameterErrors::memory),
///
///     margin = 1 - 1 / h
///
/// of the memory, so that a strategy that keeps the margin fits in nine cases of ten even where it
/// uses all the rest. The percentile is that of the framework (on NVIDIA's devices) where enough of
/// its peaks were measured (configs/intervals/parameter-errors.yaml), else that of all. Not
/// modelled: that the driver's and the communication library's part (the reserve) is as uncertain.
#pragma once

#include <string>

#include "base/units.h"

#include "sim/simulate/prediction.h"
#include "sim/study/study.h"

namespace foreshard::study {

struct MemoryMargin {
  double part = 0;     ///< The part of each device's memory.
  std::string source;  ///< "the study's", "9 of 10 of 45 measured peaks are less above ...".

  /// Whether a device of that memory, of which `capacity` is there for tensors, has less left.
  bool is_tight(Bytes peak, Bytes capacity, Bytes memory) const {
    return peak > capacity - part * memory;
  }
  /// That of the device with the least room.
  bool is_tight(const sim::Prediction& prediction) const;
};

/// That of the study, or by the measured peaks of its framework.
MemoryMargin memory_margin_of(const LoadedStudy& study);

}  // namespace foreshard::study
