/// \file
/// The operator graphs of a transformer: a decoder, an encoder, or both. A model is three kinds of
/// blocks: what makes tokens of its input (embedding), a layer of each kind that it has (LayerKind)
/// and the head with the loss; between layers and head may be modules that predict more tokens.
///
/// Packed projections are ordered so that an even split of the columns gives every rank what it
/// needs together:
/// - query, key, value: by key-value group; of each the query heads, then its key head, then its
///   value head (Megatron-LM, megatron/core/transformer/attention.py). A rank holds whole groups:
///   the strategy check refuses more tensor-parallel ranks than key-value heads;
/// - what a Mamba layer projects: by group (transformer_mamba.cc);
/// - gate and up of SwiGLU alternate: gate 0, up 0, gate 1, up 1, ...
#pragma once

#include <vector>

#include "strategies/graph/context_exchange.h"
#include "strategies/graph/graph.h"
#include "strategies/graph/implementation.h"
#include "strategies/graph/model.h"
#include "strategies/graph/quantization.h"

namespace foreshard {

/// How the graph is to be built and where the strategy wants parameters and boundaries to lie.
struct TransformerOptions {
  std::vector<MeshAxis> mesh;      ///< Axes named below are looked up here by name.
  std::int64_t batch = 1;          ///< Sequences per micro-batch over all data-parallel ranks.
  bool sequence_parallel = false;  ///< Between the tensor-parallel parts: split along the sequence.
  /// By which ranks along "context" see the keys of other tokens.
  ContextExchange context_exchange = ContextExchange::kAllGather;
  double capacity_factor = 1;  ///< Slots of an expert, times its even share of the tokens.
  AttentionImplementation attention = AttentionImplementation::kFused;
  Pointwise pointwise{};
  /// Gate and up projection of a gated feed-forward layer are two products, "mlp_gate" and
  /// "mlp_up", each of its own columns; else one, of columns that alternate. Experts have one.
  bool gate_apart = false;
  /// Weights of a token's experts are factors of their activations, where these are gated; else of
  /// their results, which are then kept for the gradients of the weights.
  bool weights_at_activation = false;
  bool experts_apart = false;   ///< The product of each expert is a launch of its own.
  bool counts_on_host = false;  ///< The host waits to know how many tokens go to which expert.
  bool sorts_slots = false;     ///< Slots arrive by sender, and are put in order of experts.
  /// Tokens travel to experts as the products there read them, quantized; else in `dtype`.
  bool quantized_dispatch = false;
  /// What the activations of quantized experts read is kept quantized for the backward pass.
  bool quantized_expert_inputs = false;
  double attention_copies = 0;           ///< Framework::attention_copies, forward.
  double attention_gradient_copies = 0;  ///< Likewise, backward.
  /// With `quantization`: packed attention computes in fp8.
  bool fp8_attention = false;
  /// With `quantization`: what activations of dense layers read is kept in fp8.
  bool fp8_activation_inputs = false;
  /// The loss writes its gradient over the logits; else it keeps exponentials in fp32.
  bool fused_cross_entropy = false;
  std::int64_t logged_losses = 0;        ///< Framework::logged_losses.
  std::int64_t vocabulary_multiple = 1;  ///< The vocabulary is padded to a multiple of this.
  DType dtype = DType::kBf16;
  Quantization quantization = Quantization::kNone;  ///< Of the linear layers between the norms.
  UnquantizedLayers unquantized{};
};

struct TransformerGraphs {
  Graph embedding;
  std::vector<Graph> layers;       ///< One of each of the model's kinds (Model::layer_kinds).
  std::vector<Graph> predictions;  ///< Modules that predict one more token each.
  Graph head;
};

/// Forward graphs, shapes whole. The parameters carry the Megatron attributes (Shoeybi et al. 2019;
/// sequence parallelism: Korthikanti et al. 2022): query/key/value and up projections split by
/// column, output and down projections by row, embedding and output projection by vocabulary;
/// everything else follows by propagation.
///
/// Under context parallelism each rank has a part of every sequence. Its queries need the keys and
/// values of all tokens: they are gathered, go round a ring, or an all-to-all brings whole
/// sequences of some of the heads. Each rank's queries are the i-th part of 2n from the front
/// and the i-th from the end, so that all n ranks have as many scores to compute; which tokens
/// these are changes nothing else. Source: Liu et al., "Ring Attention", arXiv 2310.01889; Jacobs
/// et al., "DeepSpeed Ulysses", arXiv 2309.14509; Grattafiori et al., "The Llama 3 Herd of Models",
/// arXiv 2407.21783, section 3.3.2.
///
/// Of attention from latents, projections to latents lie whole on every tensor-parallel rank, and
/// under sequence parallelism each works on its own tokens: the latents are gathered, not the
/// stream. Not modelled: absorbing the projections from latents into attention (as inference does).
///
/// A layer with experts: every rank routes its own tokens (under sequence or context parallelism
/// its part of a sequence) to slots of the experts. One all-to-all among all ranks that hold other
/// experts brings the slots there, another one brings the results back. Not modelled: unequal loads
/// of experts (each has capacity_factor times its even share, rounded up for each sequence or part
/// of one); biases that balance them; the choice of groups of experts first, and the passes over a
/// token's few weights that make them add up to 1 or scale them; the gathering of the counts of
/// tokens over the ranks. A module that predicts one more token, behind the last layer or the
/// module before: it norms the stream and the embeddings of the tokens as many places behind,
/// projects the two together to the width of one, and has a layer like the last one and a norm.
/// Behind it, streams of all predictions are one tensor, which the output projection and the loss
/// take at once. The first module has the norm behind the layers. Its projection is split by
/// column, its result gathered, and under sequence parallelism each rank goes on with its tokens.
/// Not modelled: shifts of the ids and targets, for which under context parallelism neighbours
/// exchange one id a part (they come as data); counts of right predictions, for logs; the place of
/// embeddings outside of what full recomputation computes again. Source: DeepSeek-AI, "DeepSeek-V3
/// technical report", arXiv 2412.19437, section 2.2; NVIDIA/Megatron-LM,
/// megatron/core/transformer/multi_token_prediction.py.
///
/// \pre `model` is checked; mesh has axes of tensor and data parallelism. The batch is split over
/// sample_axes(), sequences over context_axes(), experts over expert_axes() (mesh_axes.h).
TransformerGraphs transformer_graphs(const Model& model, const TransformerOptions& options);

/// The whole model as one graph: embedding, every layer, head; each tensor but those at the borders
/// is prefixed by its block ("layer3.qkv").
/// \pre as transformer_graphs().
Graph transformer_graph(const Model& model, const TransformerOptions& options);

}  // namespace foreshard
