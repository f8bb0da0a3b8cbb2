/// \file
/// The operator graphs of a transformer: a decoder, an encoder, or both. A model consists of
/// blocks: the embedding, which turns the input into states; a layer of each kind that it has
/// (LayerKind); and the head with the loss. Modules that predict more tokens may come between
/// layers and head.
///
/// Packed projections are ordered so that an even split of the columns gives every rank what it
/// needs together:
/// - query, key, value: by key-value group; each group has its query heads, then its key head, then
///   its value head (Megatron-LM, megatron/core/transformer/attention.py). A rank holds whole
///   groups: the strategy check refuses more tensor-parallel ranks than key-value heads;
/// - the input projection of a Mamba layer: by group (transformer_mamba.cc);
/// - gate and up of SwiGLU alternate: gate 0, up 0, gate 1, up 1, ...
#pragma once

#include <vector>

#include "strategies/graph/graph.h"
#include "strategies/graph/implementation.h"
#include "strategies/graph/model.h"
#include "strategies/graph/quantization.h"

namespace foreshard {

/// How the graph is built, and how the strategy lays out parameters and boundaries.
struct TransformerOptions {
  std::vector<MeshAxis> mesh;  ///< The mesh; axes are looked up in it by name.
  std::int64_t batch = 1;      ///< Sequences per micro-batch over all data-parallel ranks.
  /// Split the sequence between the tensor-parallel parts of a layer.
  bool sequence_parallel = false;
  /// How ranks along "context" see the keys of other ranks' tokens.
  ContextExchange context_exchange = ContextExchange::kAllGather;
  double capacity_factor = 1;  ///< Slots of an expert, as a multiple of its even share of tokens.
  AttentionImplementation attention = AttentionImplementation::kFused;
  Pointwise pointwise{};
  /// Gate and up projection of a gated feed-forward layer are two separate products, "mlp_gate" and
  /// "mlp_up"; else one product with alternating columns. Experts always have one product.
  bool gate_apart = false;
  /// The weights of a token's experts multiply the experts' activations, if these are gated; else
  /// their results, which are then saved for the gradients of the weights.
  bool weights_at_activation = false;
  bool experts_apart = false;   ///< One launch for the product of each expert.
  bool counts_on_host = false;  ///< The host waits for the counts of tokens per expert.
  bool sorts_slots = false;     ///< Slots arrive by sender, and are sorted by expert.
  /// Tokens are sent to experts already quantized for the products there; else in `dtype`.
  bool quantized_dispatch = false;
  /// The inputs of the activations of quantized experts are saved quantized.
  bool quantized_expert_inputs = false;
  double attention_copies = 0;           ///< Framework::attention_copies, forward.
  double attention_gradient_copies = 0;  ///< Framework::attention_copies, backward.
  /// With `quantization`: packed attention computes in fp8.
  bool fp8_attention = false;
  /// With `quantization`: the inputs of the activations of dense layers are saved in fp8.
  bool fp8_activation_inputs = false;
  /// The loss overwrites the logits with their gradient; else it saves exponentials in fp32.
  bool fused_cross_entropy = false;
  std::int64_t logged_losses = 0;        ///< Framework::logged_losses.
  std::int64_t vocabulary_multiple = 1;  ///< The vocabulary is padded to a multiple of this.
  DType dtype = DType::kBf16;
  Quantization quantization = Quantization::kNone;  ///< Recipe of the layers' linear layers.
  UnquantizedLayers unquantized{};
};

struct TransformerGraphs {
  Graph embedding;
  std::vector<Graph> layers;       ///< One for each kind of layer, as in Model::layer_kinds.
  std::vector<Graph> predictions;  ///< One for each module that predicts one more token.
  Graph head;
};

/// Builds the forward graphs, with whole shapes. The parameters carry the Megatron attributes
/// (Shoeybi et al. 2019; sequence parallelism: Korthikanti et al. 2022): query/key/value and up
/// projections split by column, output and down projections by row, embedding and output projection
/// by vocabulary; everything else follows by propagation.
///
/// Context parallelism: each rank has a part of every sequence. Its queries need the keys and
/// values of all tokens: these are gathered, go round a ring, or an all-to-all brings whole
/// sequences of some of the heads. Sequences are cut into 2n parts; rank i of n has the i-th part
/// from the front and the i-th from the end, so that all ranks compute equally many scores; which
/// tokens a rank has matters for nothing else. Source: Liu et al., "Ring Attention", arXiv
/// 2310.01889; Jacobs et al., "DeepSpeed Ulysses", arXiv 2309.14509; Grattafiori et al., "The Llama
/// 3 Herd of Models", arXiv 2407.21783, section 3.3.2.
///
/// Attention from latents: projections to latents lie whole on every tensor-parallel rank, and
/// under sequence parallelism each rank projects its own tokens; the latents are gathered, not the
/// stream. Not modelled: absorbing the projections from latents into attention (as inference does).
///
/// Experts: every rank routes its own tokens (under sequence or context parallelism, its part of a
/// sequence) to slots of the experts. One all-to-all among all ranks that hold different experts
/// brings the slots there, another one brings the results back. Not modelled: unequal loads of
/// experts (each has capacity_factor times its even share, rounded up for each sequence or part of
/// one); biases that balance them; the preceding choice of groups of experts, and the passes over a
/// token's few weights that normalise or scale them; the gathering of the counts of tokens over the
/// ranks.
///
/// Multi-token prediction: a module that predicts one more token follows the last layer or the
/// previous module. It normalises the stream and the embeddings of the tokens that many places
/// ahead, projects the two together to the width of one, and has a layer like the last one and a
/// norm. After the modules, the streams of all predictions are one tensor, which the output
/// projection and the loss read at once. The first module includes the norm after the layers. A
/// module's projection is split by column, the result is gathered, and under sequence parallelism
/// each rank goes on with its tokens. Not modelled: shifting ids and targets (they come as data;
/// under context parallelism neighbours would exchange one id per part); counts of correct
/// predictions, for logs; that the module's embeddings are outside of full recomputation. Source:
/// DeepSeek-AI, "DeepSeek-V3 technical report", arXiv 2412.19437, section 2.2; NVIDIA/Megatron-LM,
/// megatron/core/transformer/multi_token_prediction.py.
///
/// \pre `model` is checked; the mesh has axes of tensor and data parallelism. The batch is split
/// over sample_axes(), sequences over context_axes(), experts over expert_axes() (mesh_axes.h).
TransformerGraphs transformer_graphs(const Model& model, const TransformerOptions& options);

/// The whole model as one graph: embedding, every layer, modules that predict more tokens, head.
/// The name of each tensor begins with the block that makes it ("layer3.qkv").
/// \pre as transformer_graphs().
Graph transformer_graph(const Model& model, const TransformerOptions& options);

}  // namespace foreshard
