/// \file
/// The parts of a Breakdown and of a device's memory, with the names that all outputs use.
#pragma once

#include <array>
#include <string_view>

#include "sim/simulate/prediction.h"

namespace foreshard::report {

struct Part {
  std::string_view key;    ///< Key in JSON and CSV.
  std::string_view label;  ///< Label for people.
  Seconds sim::Breakdown::*time;
};

/// In the order in which an instant is attributed to a part, idle time last.
inline constexpr std::array<Part, 9> kParts{{
    {"compute", "compute", &sim::Breakdown::compute},
    {"optimizer", "optimizer", &sim::Breakdown::optimizer},
    {"tp_comm", "tensor comm.", &sim::Breakdown::tensor},
    {"cp_comm", "context comm.", &sim::Breakdown::context},
    {"ep_comm", "expert comm.", &sim::Breakdown::expert},
    {"pp_comm", "pipeline comm.", &sim::Breakdown::pipeline},
    {"dp_comm", "data comm.", &sim::Breakdown::data},
    {"host", "host", &sim::Breakdown::host},
    {"pipeline_bubble", "pipeline bubble", &sim::Breakdown::bubble},
}};

/// Indexed by program::MemoryKind.
inline constexpr std::array<std::string_view, 5> kMemoryParts{
    "parameters", "gradients", "optimizer", "activations", "buffers"};

}  // namespace foreshard::report
