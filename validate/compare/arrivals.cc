#include "validate/compare/arrivals.h"

#include <algorithm>
#include <string>
#include <variant>

#include "validate/measurement/fingerprint.h"

namespace foreshard::compare {

Result<measure::Arrivals> arrivals_of(const program::Program& program,
                                      const sim::Prediction& prediction, std::int64_t rank) {
  if (rank < 0 || rank >= program.ranks())
    return Error{Error::Code::kInvalidInput, "there is no rank " + std::to_string(rank) +
                                                 "; the Program has " +
                                                 std::to_string(program.ranks()) + ", from 0 on"};
  if (prediction.interruption)
    return Error{Error::Code::kInvalidInput,
                 "the predicted step never ends; its communications do not all arrive"};
  measure::Arrivals out{.program = program.name,
                        .fingerprint = measure::fingerprint_of(program),
                        .rank = static_cast<std::int32_t>(rank)};
  const auto c = prediction.class_of_rank[static_cast<std::size_t>(rank)];
  for (const sim::TimelineEntry& entry : prediction.timeline) {
    if (entry.device_class != c) continue;
    const program::Task& task = program.blocks[static_cast<std::size_t>(entry.block)]
                                    .tasks[static_cast<std::size_t>(entry.task)];
    out.seconds.push_back(std::holds_alternative<program::Communication>(task.body)
                              ? std::optional(entry.finish)
                              : std::nullopt);
  }
  return out;
}

}  // namespace foreshard::compare
