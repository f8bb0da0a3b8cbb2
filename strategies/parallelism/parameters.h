/// \file
/// The placement of every parameter of a model under a strategy, with its optimizer states:
/// name, type, shape and layout of each tensor, read from the graphs that lowering runs.
///
///     "layers.12.qkv.weight"               bf16 [12288, 36864]
///     "layers.12.qkv.weight.master"        fp32, same shape: the copy that the optimizer updates
///     "layers.12.qkv.weight.first_moment"  fp32  ".second_moment"  fp32
///
/// The strategy's optimizer decides which states there are, and their types. Not modelled: scales
/// of quantized moments. Remainders of a master copy have the type of the parameters, which has as
/// many bits.
///
/// Logical tensors are the same for all strategies, so that a checkpoint's slices under one
/// strategy can become slices under another:
///  - query, key and value columns are grouped by key/value group, as Megatron-LM stores them: a
///    cut between groups gives every rank whole heads;
///  - the two halves of a gated feed-forward layer are a dimension of their own, [hidden, 2, ffn],
///    for experts [experts, hidden, 2, ffn]: a rank has the same part of both;
///  - strategies with different tensor parallelism pad the vocabulary differently: `shape` has the
///    padding, `unpadded` does not. The padding is not moved; it is created anew.
///
/// ZeRO shards the optimizer states from stage 1 on, and at stage 3 also the parameters, along
/// their first dimension over the data-parallel ranks, in parts of ceil(rows / ranks) rows; the
/// last ranks may have fewer rows or none. Source: PyTorch, torch.distributed.fsdp.fully_shard
/// ("chunks each parameter on dim-0 using torch.chunk"). Not modelled: flat buffers that join
/// parameters before sharding (Megatron-LM's distributed optimizer, DeepSpeed): they move the same
/// bytes to within a row per parameter and rank, at other offsets.
///
/// A pipeline stage has its layers. An embedding that is tied, or that modules after the layers
/// read, is replicated on the first and the last stage. These modules are numbered as layers after
/// the last one, as in the files of DeepSeek-V3.
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
  Layout layout{};   ///< Ranks are the strategy's: 0 .. devices() - 1.
  bool operator==(const PlacedTensor&) const = default;
};

/// All tensors in the order of the model; each parameter precedes its optimizer states. `mode:
/// forward` and frozen parameters have no optimizer states.
/// \pre faults_in(strategy, model, ...) is empty.
std::vector<PlacedTensor> parameters_of(const Model& model, const Strategy& strategy);

}  // namespace foreshard
