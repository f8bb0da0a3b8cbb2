/// \file
/// The schedules, one function each. Callers go through schedule.h.
#pragma once

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {

/// GPipe: all micro-batches forward, then all backward, the last one first. Bubble (p-1)/m of the
/// ideal time; m micro-batches in flight on every stage.
///
/// Source: Huang et al., "GPipe: efficient training of giant neural networks using pipeline
/// parallelism", NeurIPS 2019, section 2.3 and figure 2c.
/// \return kInvalidInput for more than one chunk.
Result<std::vector<Slot>> gpipe_order(const Shape& shape);

/// 1F1B with a flush (PipeDream-flush): min(p-1-s, m) forward passes to warm up, then one forward
/// and one backward in turn, then the backward passes left. Bubble (p-1)/m; min(p-s, m)
/// micro-batches in flight.
///
/// Source: Narayanan et al., "Memory-efficient pipeline-parallel DNN training", ICML 2021; as in
/// "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021,
/// section 2.2.1.
/// \return kInvalidInput for more than one chunk.
Result<std::vector<Slot>> one_f_one_b_order(const Shape& shape);

/// Interleaved 1F1B: stage s holds v chunks and runs p micro-batches through one chunk before it
/// turns to the next; min(2(p-1-s) + (v-1)p, mv) forward passes to warm up, then one forward and
/// one backward in turn. Bubble (p-1)/(m v); one pass more than the warm-up in flight (in chunks).
///
/// Source: Narayanan et al., SC 2021, section 2.2.2 and figure 4; the warm-up is Megatron-LM's
/// (megatron/core/pipeline_parallel/schedules.py).
/// Not modelled: Megatron-LM's microbatch_group_size_per_vp_stage other than p.
/// \return kInvalidInput for fewer than two chunks or stages, or if p does not divide m.
Result<std::vector<Slot>> interleaved_one_f_one_b_order(const Shape& shape);

}  // namespace foreshard::schedule
