/// \file
/// The parts of a Breakdown by the names that results of searches use.
#pragma once

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sim/simulate/prediction.h"

namespace foreshard::search::internal {

struct Part {
  std::string_view key;    ///< Key in foreshard.prediction/1.
  std::string_view label;  ///< Label in text for people.
  Seconds sim::Breakdown::*time;
};

inline constexpr std::array<Part, 9> kParts{{
    {"compute", "compute", &sim::Breakdown::compute},
    {"tp_comm", "tensor comm.", &sim::Breakdown::tensor},
    {"cp_comm", "context comm.", &sim::Breakdown::context},
    {"ep_comm", "expert comm.", &sim::Breakdown::expert},
    {"pp_comm", "pipeline comm.", &sim::Breakdown::pipeline},
    {"dp_comm", "data comm.", &sim::Breakdown::data},
    {"pipeline_bubble", "bubble", &sim::Breakdown::bubble},
    {"optimizer", "optimizer", &sim::Breakdown::optimizer},
    {"host", "host", &sim::Breakdown::host},
}};

/// The largest part; without `with_compute`, the largest one beside computation.
inline const Part& dominant(const sim::Breakdown& breakdown, bool with_compute) {
  return *std::ranges::max_element(kParts, {}, [&](const Part& part) {
    return part.key == "compute" && !with_compute ? Seconds::from_base(-1) : breakdown.*part.time;
  });
}

inline nlohmann::ordered_json breakdown_json(const sim::Breakdown& breakdown) {
  nlohmann::ordered_json json;
  for (const Part& part : kParts) json[std::string(part.key)] = (breakdown.*part.time).in_base();
  return json;
}

}  // namespace foreshard::search::internal
