/// \file
/// Reports of a choice, as `foreshard reshard` prints them: text for people; JSON (schema
/// "foreshard.reshard/1", docs/reshard.md) and CSV (one line per step of the chosen plan) for
/// programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/page.h"
#include "base/record/forward.h"
#include "base/result.h"

#include "strategies/reshard/choose.h"

namespace foreshard::reshard {

/// The question, the choice, and further numbers of the chosen plan.
struct Explanation {
  TensorSpec tensor{};
  Layout from{};
  Layout to{};
  std::string cluster{};
  Choice choice{};

  struct StepNumbers {
    std::string primitive{};
    std::vector<std::string> axes{};
    std::string from{};  ///< The layout before the step, as text.
    std::string to{};
    std::int64_t groups = 0;
    std::int64_t ranks_per_group = 0;  ///< Ranks of the largest group.
    double messages = 0;     ///< Messages of a transfer, moves within a rank included; else 0.
    Bytes bytes_per_rank{};  ///< Bytes that cross links, divided by the ranks of the step.
    Volume volume{};
    Seconds time{};  ///< Closed form, copies included.
  };
  std::vector<StepNumbers> steps{};  ///< One per step of the chosen plan.

  struct LinkUse {
    std::string from{};
    std::string to{};
    Bytes bytes{};
    Seconds time{};  ///< Time of these bytes at the link's bandwidth.
  };
  std::vector<LinkUse> links{};  ///< Links that the chosen plan uses, the busiest (by time) first.
  bool links_known = true;       ///< False if the plan has too many messages to follow.
};

/// \return as `choose`
Result<Explanation> explain(const TensorSpec& tensor, const Layout& from, const Layout& to,
                            const CostModel& cost, const Placement& placement,
                            const ChooseOptions& options = {});

std::string to_text(const Explanation& explanation, const Paper& paper = {});
std::string to_json(const Explanation& explanation);
const record::Record<Explanation>& record_of(const Explanation*);
std::string to_csv(const Explanation& explanation);

}  // namespace foreshard::reshard
