/// \file
/// Schedules whose stages take several micro-batches in one pass, each as many as suits its kind of
/// device. A slot has the number of the first micro-batch that it takes.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {

/// 1F1B whose stage s takes `taken[s]` micro-batches at a time. Before its first backward pass,
/// stage s runs w(s) micro-batches forward: as many as the next stage, plus one pass of whichever
/// of the two takes more:
///
///     w(last) = taken(last),   w(s) = w(s+1) + max(taken(s), taken(s+1)), up to whole passes
///
/// With one micro-batch per pass this is plain 1F1B. Stage s cannot deadlock: its backward pass k
/// (micro-batches up to (k+1) taken(s)) requires that stage s+1 has run fewer than w(s+1) + (k+1)
/// taken(s) micro-batches forward, and stage s itself has run w(s) + k taken(s).
/// \pre each entry of `taken` divides `micro_batches`, and of two neighbouring entries one divides
///     the other
Table granular_one_f_one_b(const std::vector<std::int64_t>& taken, std::int32_t micro_batches);

}  // namespace foreshard::schedule
