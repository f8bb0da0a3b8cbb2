/// \file
/// The records (base/record/record.h) of what several results share: a breakdown, memory, and the
/// unmeasured part of a step. Each has its keys here once.
#pragma once

#include <array>
#include <string_view>

#include "base/record/forward.h"

#include "sim/simulate/prediction.h"
#include "sim/study/alternatives.h"
#include "sim/study/draws.h"
#include "sim/study/evidence.h"

namespace foreshard::sim {

/// A part of a step's time.
struct BreakdownPart {
  std::string_view key;    ///< Key in JSON and CSV: "tp_comm".
  std::string_view label;  ///< Short label in tables for people.
  std::string_view name;   ///< Name in sentences.
  Seconds Breakdown::*time;
};

/// In the order in which an instant is attributed to a part, idle time last.
inline constexpr std::array<BreakdownPart, 9> kBreakdownParts{{
    {"compute", "compute", "computation", &Breakdown::compute},
    {"optimizer", "optimizer", "optimizer", &Breakdown::optimizer},
    {"tp_comm", "tensor comm.", "tensor-parallel communication", &Breakdown::tensor},
    {"cp_comm", "context comm.", "context-parallel communication", &Breakdown::context},
    {"ep_comm", "expert comm.", "communication of experts", &Breakdown::expert},
    {"pp_comm", "pipeline comm.", "pipeline communication", &Breakdown::pipeline},
    {"dp_comm", "data comm.", "data-parallel communication", &Breakdown::data},
    {"host", "host", "host", &Breakdown::host},
    {"pipeline_bubble", "pipeline bubble", "pipeline bubble", &Breakdown::bubble},
}};

/// The largest part; without `with_compute`, the largest one beside computation.
const BreakdownPart& dominant(const Breakdown& breakdown, bool with_compute);

/// Keys of memory by kind, indexed by program::MemoryKind.
inline constexpr std::array<std::string_view, 5> kMemoryParts{
    "parameters", "gradients", "optimizer", "activations", "buffers"};

const record::Record<Breakdown>& record_of(const Breakdown*);
/// The bytes by kind alone.
const record::Record<MemoryUse>& record_of(const MemoryUse*);
const record::Record<Warning>& record_of(const Warning*);

}  // namespace foreshard::sim

namespace foreshard::study {

const record::Record<StepKind>& record_of(const StepKind*);
const record::Record<Unmeasured>& record_of(const Unmeasured*);
const record::Record<Alternative>& record_of(const Alternative*);
const record::Record<DrawnSteps>& record_of(const DrawnSteps*);

}  // namespace foreshard::study
