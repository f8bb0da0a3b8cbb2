/// \file
/// The parts into which the predicted time of a step is broken down, with their keys in results.
/// Used by report.cc (JSON, CSV) and causes.h (correlations).
#pragma once

#include <array>

#include "sim/simulate/prediction.h"

namespace foreshard::accuracy {

struct StepPart {
  const char* key;                ///< Key in JSON and CSV.
  const char* words;              ///< Name in text for people.
  Seconds sim::Breakdown::*time;  ///< The part's time in a breakdown.
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
