/// \file
/// Random pairs of small model and strategy, every one of which can be lowered.
#pragma once

#include <random>
#include <string>

#include "strategies/parallelism/strategy.h"

namespace foreshard {

struct Training {
  Model model;
  Strategy strategy;
};

/// All knobs, on at most `max_devices` devices; faults_in finds nothing.
Training random_training(std::mt19937& random, std::int64_t max_devices);

/// The `i`-th way to quantize its linear layers; of every third, and of fp32, none.
void quantize(Strategy& strategy, unsigned i);

/// Of every second that shards states, several sets of shards where the ranks allow it.
void replicate_shards(Strategy& strategy, unsigned i);

/// Of every fourth, sequences split over 2 or 4 ranks, in the ways that its attention allows.
void give_context(Training& training, unsigned i);

/// Of every third with a pipeline, a schedule other than those that random_training draws, with
/// chunks, micro-batches and layers for it.
void reschedule(Training& training, unsigned i);

/// Of every third, layers of experts, every expert with a slot for each token; shared among ranks
/// where the strategy allows it.
void give_experts(Training& training, unsigned i);

/// Of every second with experts on several ranks, tokens are exchanged beside other passes, where
/// the schedule pairs them; a ZeRO stage for it.
void overlap_exchanges(Training& training, unsigned i);

/// Of every third, adapters of some of its layers, which alone are trained.
void give_adapters(Training& training, unsigned i);

/// Of half of those without adapters, modules that predict one or two more tokens, without learned
/// positions.
void give_predictions(Training& training, unsigned i);

/// Of two of four without adapters, gate and up projections that are products of their own.
void part_gates(Training& training, unsigned i);

/// Of every second, some parts of some layers are recomputed, whatever the strategy recomputed.
void recompute_parts(Training& training, unsigned i);

/// Of every third, activations of some layers, optimizer states or parameters are offloaded, where
/// the strategy allows it.
void offload(Training& training, unsigned i);

/// Of every fifth, layers that see a window, sinks, layers without positions; of others, latents.
/// Attention is then fused.
void give_attention(Training& training, unsigned i);

/// Of some, frozen parts or frozen weights in 4 bits, packed samples, or layers at the ends that
/// are not quantized, where model and strategy allow it.
void fine_tune(Training& training, unsigned i);

/// Of every second that has experts, biases and another router, or a gate.
void give_routers(Training& training, unsigned i);

/// "tp 2 pp 3 (interleaved x 2) dp 2 zero 1 ...", to reproduce a failure.
std::string describe(const Training& training);

}  // namespace foreshard
