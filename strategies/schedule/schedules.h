/// \file
/// The schedules, one function each. Callers go through schedule.h.
///
/// A bubble is the time that a stage waits between its first and its last pass, given equal chunks
/// and transfers that take no time. F, B and W are the times of a forward pass, of input gradients
/// and of weight gradients through one stage; p, v and m are as in schedule.h. Chunks and stages
/// are within the limits of the table in schedule.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {

/// GPipe: all micro-batches forward, then all backward, the last one first. Bubble
/// (p-1)(F + B + W); m micro-batches in flight on every stage.
///
/// Source: Huang et al., "GPipe: efficient training of giant neural networks using pipeline
/// parallelism", NeurIPS 2019, section 2.3 and figure 2c.
Result<Table> gpipe(const PipelineShape& shape);

/// 1F1B with a flush (PipeDream-flush): min(p-1-s, m) forward passes to warm up, then one forward
/// and one backward pass in turn, then the remaining backward passes. Bubble (p-1)(F + B + W);
/// min(p-s, m) micro-batches in flight.
///
/// Source: Narayanan et al., "Memory-efficient pipeline-parallel DNN training", ICML 2021; as in
/// "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021,
/// section 2.2.1.
Result<Table> one_f_one_b(const PipelineShape& shape);

/// Interleaved 1F1B: stage s holds v chunks and runs p micro-batches through one chunk before it
/// turns to the next; min(2(p-1-s) + (v-1)p, mv) forward passes to warm up, then one forward and
/// one backward pass in turn. Bubble (p-1)(F + B + W) / v; in flight: one pass (through a chunk)
/// more than the warm-up.
///
/// Source: Narayanan et al., SC 2021, section 2.2.2 and figure 4; the warm-up is Megatron-LM's
/// (megatron/core/pipeline_parallel/schedules.py). With PipelineShape::pairs the warm-up has one
/// more pass, and each later forward pass overlaps the backward pass that follows it
/// (megatron/core/pipeline_parallel/combined_1f1b.py). 1F1B does the same, on one stage.
/// Not modelled: Megatron-LM's microbatch_group_size_per_vp_stage other than p.
/// \return kInvalidInput if p does not divide m.
Result<Table> interleaved_one_f_one_b(const PipelineShape& shape);

/// Breadth-first: a stage runs all micro-batches through one chunk before it turns to the next,
/// first forward and then backward, so that a chunk's parameters are gathered, and its gradients
/// reduced, only once. Bubble (p-1)(F + B + W) / v where m >= p; m v chunks in flight.
///
/// Source: Lamy-Poirier, "Breadth-first pipeline parallelism", MLSys 2023 (arXiv 2211.05953),
/// section 3 and figure 2d.
Result<Table> breadth_first(const PipelineShape& shape);

/// ZB-H1: 1F1B whose backward passes run in two parts. On stage s, the weight gradients of a
/// micro-batch follow the input gradients of the micro-batch s later. Bubble (p-1)(F + B - W) where
/// m >= p; min(p, m) micro-batches in flight on every stage, including those whose weight gradients
/// are still to come.
///
/// Source: Qi et al., "Zero bubble pipeline parallelism", ICLR 2024 (arXiv 2401.10241), section 2
/// and figure 2.
/// Not modelled, for all schedules of that paper: validation of the gradient norm after the
/// optimizer step, with which the stages need not start their optimizer steps together.
Result<Table> zb_h1(const PipelineShape& shape);

/// ZB-H2: as ZB-H1, with 2(p-1-s) forward passes to warm up and weight gradients 2s micro-batches
/// later. Bubble (p-1)(F + B - 2W) where m >= 2p-1; min(2p-1, m) micro-batches in flight.
///
/// Source and what is not modelled: as zb_h1; figure 3.
Result<Table> zb_h2(const PipelineShape& shape);

/// ZB-1p: forward passes and input gradients in the order of 1F1B, weight gradients where a stage
/// would wait (fill.h), and at most p micro-batches in flight.
///
/// Source and what is not modelled: as zb_h1; section 3.1.
/// Not modelled: that section's search for forward passes to leave out of the warm-up.
Result<Table> zb_1p(const PipelineShape& shape);

/// ZB-2p: as ZB-1p, with 2(p-1-s) forward passes to warm up and 2p micro-batches in flight.
Result<Table> zb_2p(const PipelineShape& shape);

/// ZB-V (V-ZB): two chunks, placed in a V. No bubble where F = B = W and m >= 2p; 2p chunks in
/// flight on every stage, as many as 1F1B has on its first stage.
///
/// Source: Qi et al., ICLR 2024, section 6 and figure 6; Qi et al., "Pipeline parallelism with
/// controllable memory", NeurIPS 2024 (arXiv 2405.15362).
/// Not modelled: as zb_h1.
Result<Table> zb_v(const PipelineShape& shape);

/// V-Half: forward passes and input gradients repeat every six passes in a pattern that keeps about
/// half of the activations that 1F1B has on the first stage (p + 2 chunks where p is even); weight
/// gradients as in ZB-1p. Bubble: 3(p-1) passes through a chunk where F = B = W, half of 1F1B's.
///
/// Source: Qi et al., NeurIPS 2024, section 3 and appendix; the pattern's offsets are taken from
/// sail-sg/zero-bubble-pipeline-parallelism, zerobubble/scheduler/zbv_greedy.py.
/// Not modelled: the later moves of single passes in the warm-up and at the end in that code.
Result<Table> v_half(const PipelineShape& shape);

/// V-Min: as V-Half, with about a third of 1F1B's activations and two thirds of its bubble. Where
/// F, B and W differ, its stages wait in every micro-batch, as the source says.
Result<Table> v_min(const PipelineShape& shape);

/// DualPipeV: two chunks in a V; a stage alternates a forward pass of one chunk and a backward pass
/// of the other. 2p + 1 chunks in flight.
///
/// Source: DeepSeek-AI, "DeepSeek-V3 technical report" (arXiv 2412.19437), section 3.2.1, and the
/// eight steps of github.com/deepseek-ai/DualPipe, which torch/distributed/pipelining has too
/// (ScheduleDualPipeV).
/// With PipelineShape::pairs the forward and the backward pass of steps 4 and 5 run side by side.
/// \return kInvalidInput for fewer than 2p micro-batches.
Result<Table> dualpipe_v(const PipelineShape& shape);

/// The table that PipelineShape::actions describe.
/// \return kInvalidInput with the first fault of actions.h.
Result<Table> custom(const PipelineShape& shape);

/// 1F1B whose stage s takes `taken[s]` micro-batches at a time, as many as suits its kind of
/// device. A slot has the number of the first micro-batch that it takes. Before its first backward
/// pass, stage s runs w(s) micro-batches forward: as many as the next stage, plus one pass of
/// whichever of the two takes more:
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
