/// \file
/// Where every parameter of a model lies under a strategy, and with it what training keeps beside
/// it (R1.3): name, type, shape and layout of each tensor, read from the graphs that lowering runs.
///
///     "layers.12.qkv.weight"               bf16 [12288, 36864]
///     "layers.12.qkv.weight.master"        fp32, likewise: the copy that the optimizer updates
///     "layers.12.qkv.weight.first_moment"  fp32  ".second_moment"  fp32
///
/// Which of them there are, and their types, says the strategy's optimizer. Not modelled: scales of
/// moments that are quantized. Remainders of a master copy have the type of the parameters, which
/// is of as many bits.
///
/// Logical tensors are the same for all strategies, so that slices of one can become those of
/// another:
///  - query, key and value columns stand together group by key/value group, as Megatron-LM stores
///    them: a cut between groups gives every rank whole heads;
///  - the two halves of a gated feed-forward layer are a dimension of their own, [hidden, 2, ffn],
///    of experts [experts, hidden, 2, ffn]: a rank has the same part of both;
///  - the vocabulary is padded differently by strategies of different tensor parallelism: `shape`
///    has the padding, `unpadded` does not. What lies between is not moved; it is made anew.
///
/// ZeRO: from stage 1 on what the optimizer keeps, at stage 3 also the parameters are cut along
/// their first dimension over the data-parallel ranks, in parts of ceil(rows / ranks) rows; the
/// last ranks may have fewer rows or none. Source: PyTorch, torch.distributed.fsdp.fully_shard
/// ("chunks each parameter on dim-0 using torch.chunk"). Not modelled: flat buffers that join
/// parameters before the cut (Megatron-LM's distributed optimizer, DeepSpeed): they move the same
/// bytes to within a row per parameter and rank, in other places.
///
/// A pipeline stage has its layers; an embedding that is tied, or that modules behind the layers
/// read, lies on the first and the last stage, as replicas. These modules are named like layers
/// behind the last one, as in the files of DeepSeek-V3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/graph/layout.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard {

enum class StateKind : std::uint8_t { kParameter, kMaster, kFirstMoment, kSecondMoment };
std::string_view name_of(StateKind kind);

struct PlacedTensor {
  std::string name{};
  StateKind kind = StateKind::kParameter;
  DType dtype = DType::kBf16;
  Shape shape{};
  Shape unpadded{};  ///< Equal to `shape` where nothing pads it.
  Layout layout{};   ///< Ranks are those of the strategy: 0 .. devices() - 1.
  bool operator==(const PlacedTensor&) const = default;
};

/// All of them, in the order of the model; of each the parameter first. `mode: forward` has only
/// parameters, and so has what is frozen.
/// \pre faults_in(strategy, model, ...) is empty.
std::vector<PlacedTensor> parameters_of(const Model& model, const Strategy& strategy);

}  // namespace foreshard
