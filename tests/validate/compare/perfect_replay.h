/// \file
/// Measurements as a replay would give them in which all goes as predicted.
#pragma once

#include "sim/simulate/prediction.h"
#include "strategies/program/ir/program.h"
#include "validate/measurement/measurement.h"

namespace foreshard::compare {

/// With 10 % to 90 % intervals of +-10 %.
inline measure::TaskTimes times(Seconds start, Seconds finish) {
  const Seconds median = finish - start;
  return {.start = start,
          .finish = finish,
          .low = 0.9 * median,
          .median = median,
          .high = 1.1 * median,
          .slack = {}};
}

/// \param prediction  with its time line.
inline measure::Measurement replayed(const program::Program& program,
                                     const sim::Prediction& prediction) {
  measure::Measurement out{.program = program.name,
                           .fingerprint = measure::fingerprint_of(program),
                           .backend = "host",
                           .repeats = 1};
  out.machines.resize(1);
  for (std::int32_t rank = 0; rank < program.ranks(); ++rank) {
    const auto c = prediction.class_of_rank[static_cast<std::size_t>(rank)];
    measure::RankRecord record{.rank = rank,
                               .steps = {prediction.classes[static_cast<std::size_t>(c)].finish}};
    for (const sim::TimelineEntry& entry : prediction.timeline)
      if (entry.device_class == c) record.tasks.push_back(times(entry.start, entry.finish));
    out.ranks.push_back(std::move(record));
  }
  return out;
}

}  // namespace foreshard::compare
