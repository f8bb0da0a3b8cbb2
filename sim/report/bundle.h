/// \file
/// What `simulate --bundle` adds to a prediction, for pictures and pages: the time line, memory
/// over time, the load of links, and the arithmetic that is done beside what the model asks for.
#pragma once

#include <vector>

#include "base/record/forward.h"
#include "base/units.h"

#include "sim/report/time_line.h"
#include "sim/simulate/prediction.h"
#include "strategies/program/ir/program.h"

namespace foreshard::report {

/// Live bytes of a class of devices over the step.
struct MemoryCurve {
  std::int32_t device_class = 0;  ///< Index into `classes` of the result.
  std::vector<memory::Sample> samples;
};

struct Bundle {
  Flops model_flops{};     ///< FLOPs that MFU counts, of all devices.
  Flops executed_flops{};  ///< FLOPs of all kernels that were done, of all devices.
  std::vector<sim::LinkGroupUse> link_groups{};
  std::vector<MemoryCurve> memory_over_time{};
  TimeLine time_line{};
};

/// \pre The timeline was requested (sim::SimulateOptions::timeline).
Bundle bundle_of(const sim::Prediction& prediction, const program::Program& program);

const record::Record<Bundle>& record_of(const Bundle*);

}  // namespace foreshard::report
