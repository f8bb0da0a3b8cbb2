/// \file
/// The parts of a step that a row's prediction is broken down into, by the keys that results use.
#pragma once

#include <array>

#include "sim/simulate/prediction.h"

namespace foreshard::accuracy {

struct StepPart {
  const char* key;
  const char* words;
  Seconds sim::Breakdown::*time;
};

inline constexpr std::array kStepParts{
    StepPart{"compute", "computation", &sim::Breakdown::compute},
    StepPart{"tp_comm", "tensor-parallel communication", &sim::Breakdown::tensor},
    StepPart{"cp_comm", "context-parallel communication", &sim::Breakdown::context},
    StepPart{"ep_comm", "communication of experts", &sim::Breakdown::expert},
    StepPart{"pp_comm", "pipeline communication", &sim::Breakdown::pipeline},
    StepPart{"dp_comm", "data-parallel communication", &sim::Breakdown::data},
    StepPart{"pipeline_bubble", "pipeline bubble", &sim::Breakdown::bubble},
    StepPart{"optimizer", "optimizer", &sim::Breakdown::optimizer},
    StepPart{"host", "host", &sim::Breakdown::host},
};

}  // namespace foreshard::accuracy
