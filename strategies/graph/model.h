/// \file
/// A transformer by its published hyper-parameters: decoders (GPT, Llama and what came of them),
/// encoders (BERT, ViT), and decoders behind an encoder (T5, Whisper).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/yaml/table.h"

#include "strategies/graph/adapters.h"
#include "strategies/graph/encoder.h"
#include "strategies/graph/ends.h"
#include "strategies/graph/frozen.h"
#include "strategies/graph/mamba.h"
#include "strategies/graph/quantization.h"
#include "strategies/graph/samples.h"

namespace foreshard {

enum class Norm : std::uint8_t { kLayerNorm, kRmsNorm, kLayerNormScale, kLayerNormPlain };
enum class Activation : std::uint8_t { kGelu, kSwiglu, kSquaredRelu };
enum class Positions : std::uint8_t { kLearned, kRotary, kNone, kRelative };
/// Which side of attention and of the feed-forward layer is normalised.
enum class NormPlaces : std::uint8_t { kBefore, kAfter, kBoth, kAfterSum };
/// Whether the feed-forward layer reads what attention gave, or stands beside it.
enum class Branches : std::uint8_t { kSequential, kParallel, kParallelOneNorm };
enum class QkNorm : std::uint8_t { kNone, kPerHead, kEveryHead, kAllHeads };
/// What a window is: so many tokens up to the query, or the query's part of a sequence that is cut.
enum class WindowKind : std::uint8_t { kSliding, kChunk };
enum class Router : std::uint8_t { kSoftmax, kSigmoid };

/// What of a layer brings tokens together.
enum class Mixer : std::uint8_t { kAttention, kMamba, kNone };

/// In what layers of one model differ.
struct LayerKind {
  bool experts = false;    ///< Behind attention: a mixture of experts, not one feed-forward layer.
  bool window = false;     ///< Attention is within the window, not to the whole sequence.
  bool unrotated = false;  ///< Without the rotary positions that others have.
  Mixer mixer = Mixer::kAttention;
  bool feed_forward = true;   ///< There is a feed-forward layer, or experts.
  bool encoder = false;       ///< Of the encoder before the decoder: reads its tokens, all at once.
  bool ends_encoder = false;  ///< The last of those: the norm behind them is its.
  bool first = false;         ///< Of encoder or decoder, where it has what the others share.
  bool frozen = false;        ///< Has no parameter that is trained.
  bool unquantized = false;   ///< Computes in 16 bits where others are quantized.
  auto operator<=>(const LayerKind&) const = default;
};
/// "layer", "expert_layer", "expert_window_layer"; of one branch: "mamba_layer", "attention_layer",
/// "mlp_layer", "experts_layer".
std::string name_of(LayerKind kind);

struct Model {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< 0: as many as `heads` (multi-head attention).
  std::int64_t head_dim = 0;  ///< Of queries and keys; 0: hidden / heads.
  std::int64_t ffn = 0;       ///< Width of the feed-forward layer; 0: 4 x hidden.
  std::int64_t vocabulary = 0;
  std::int64_t sequence = 0;  ///< Tokens per training sample.
  Norm norm = Norm::kLayerNorm;
  Activation activation = Activation::kGelu;
  Positions positions = Positions::kLearned;
  bool bias = true;             ///< All four projections of a layer have biases.
  bool qkv_bias = false;        ///< The query, key and value projection has one (Qwen 2).
  bool attention_bias = false;  ///< Both projections of attention have biases.
  bool key_bias = true;         ///< Where queries and values have a bias, keys do (not Whisper's).
  bool attention_out_bias = false;  ///< The output projection of attention has one (GPT-Neo).
  bool mlp_bias = false;            ///< Both projections of the feed-forward layer have biases.
  bool head_bias = false;           ///< The output projection of the model has one (GPT-J).
  NormPlaces norm_places = NormPlaces::kBefore;
  Branches branches = Branches::kSequential;
  QkNorm qk_norm = QkNorm::kNone;   ///< Of queries and keys, before rotation.
  bool embedding_norm = false;      ///< The embedding is normalised (BLOOM).
  std::int64_t position_table = 0;  ///< Rows of the learned positions; 0: `sequence`.
  bool tied_embeddings = true;      ///< The output projection is the input embedding.
  bool dropout = true;              ///< Of the two residual branches and the attention scores.

  std::int64_t window = 0;  ///< Tokens that a query sees, itself included; 0: all before it.
  WindowKind window_kind = WindowKind::kSliding;
  std::int64_t full_layers = 0;         ///< The first so many layers see the whole sequence.
  std::int64_t full_interval = 0;       ///< So does of every so many the last; 0: none.
  std::int64_t unrotated_interval = 0;  ///< Of every so many the last is not rotated; 0: none.
  bool sinks = false;                   ///< A learned logit beside the scores of each head.
  bool clamped_activation = false;      ///< What a SwiGLU reads is clamped (GPT-OSS).

  std::int64_t key_value_rank = 0;  ///< Width of the latents of keys and values; 0: there are none.
  std::int64_t query_rank = 0;      ///< Of those of queries; 0: projected from the stream.
  std::int64_t rotary_dim = 0;      ///< Columns of a head that rotate; of keys, one for all heads.
  std::int64_t value_dim = 0;       ///< Width of a head of the values.

  std::int64_t experts = 0;            ///< Routed experts of a layer; 0: a dense model.
  std::int64_t experts_per_token = 1;  ///< That each token is routed to (top-k).
  std::int64_t expert_groups = 1;      ///< Equal groups of neighbours, of which a token ...
  std::int64_t groups_per_token =
      1;                             ///< ... takes its experts from so many (node-limited routing).
  std::int64_t expert_ffn = 0;       ///< Width of one expert; 0: that of `ffn`.
  std::int64_t shared_ffn = 0;       ///< Width of the experts of all tokens together; 0: none.
  std::int64_t dense_layers = 0;     ///< The first so many layers have no experts.
  std::int64_t expert_interval = 1;  ///< Of every so many layers the last has experts.
  Router router = Router::kSoftmax;  ///< What makes weights of logits.
  bool router_bias = false;          ///< The router's product has a bias.
  bool shared_gate = false;          ///< A learned gate of the experts of all tokens (Qwen 2).
  /// A letter for each layer, which then has one branch and one norm (mamba.h): "M-M*-ME".
  std::string pattern{};
  std::optional<Mamba> mamba{};  ///< Of the layers of letter M.
  /// Modules behind the layers, each of which predicts one more token (MTP of DeepSeek-V3).
  std::int64_t multi_token_prediction = 0;
  bool causal = true;  ///< Tokens see those before them alone; else all, as in an encoder.
  std::int64_t token_types = 0;  ///< Rows of a table that is added to the embedding (segments).
  Head head = Head::kLanguage;   ///< Behind the layers, of every token.
  bool pooler = false;           ///< A product and tanh of the first token's state (BERT).
  std::int64_t classes = 0;      ///< That are told of its state, or of what the pooler makes of it.
  std::optional<Image> image{};  ///< What is read in place of tokens.
  std::optional<Encoder> encoder{};    ///< Before the decoder, to whose states it attends.
  std::optional<Adapters> adapters{};  ///< Which alone are trained; nothing: all parameters are.
  std::optional<Frozen> frozen{};      ///< What is not trained; nothing: all is.
  std::optional<Samples> samples{};    ///< Of other lengths than `sequence`; nothing: of that one.
  std::string source;

  std::int64_t kv() const { return kv_heads > 0 ? kv_heads : heads; }
  std::int64_t head_size() const {
    return head_dim > 0 || heads == 0 ? head_dim : hidden / heads;  // 0: there is no attention
  }
  bool has_latents() const { return key_value_rank > 0; }
  std::int64_t value_size() const { return has_latents() ? value_dim : head_size(); }
  std::int64_t ffn_width() const { return ffn > 0 ? ffn : 4 * hidden; }
  bool has_qkv_bias() const { return bias || attention_bias || qkv_bias; }
  bool has_attention_out_bias() const { return bias || attention_bias || attention_out_bias; }
  bool has_mlp_bias() const { return bias || mlp_bias; }
  bool has_final_norm() const { return norm_places != NormPlaces::kAfterSum; }
  /// Whether the output projection is the input embedding.
  bool ties_head() const { return tied_embeddings && head != Head::kNone; }
  std::int64_t encoder_layers() const { return encoder ? encoder->layers : 0; }
  /// Tokens that a layer of the kind works on.
  std::int64_t sequence_of(LayerKind kind) const {
    return kind.encoder ? encoder->sequence : sequence;
  }
  bool is_causal(LayerKind kind) const { return causal && !kind.encoder; }
  bool has_relative_table(LayerKind kind) const {
    return kind.first && positions == Positions::kRelative;
  }
  bool attends_to_encoder(LayerKind kind) const { return encoder && !kind.encoder; }
  std::int64_t position_rows() const { return position_table > 0 ? position_table : sequence; }

  std::int64_t expert_width() const { return expert_ffn > 0 ? expert_ffn : ffn_width(); }
  LayerKind kind_of_layer(std::int64_t layer, const UnquantizedLayers& unquantized = {}) const;
  /// The kinds of layers that the model has, ascending: dense ones first.
  std::vector<LayerKind> layer_kinds(const UnquantizedLayers& unquantized = {}) const;
  bool has_dense_layers() const;  ///< Layers with one feed-forward layer.
  bool has_expert_layers() const;
  bool has_mixer(Mixer mixer) const;  ///< Some layer has it.
  /// Index into layer_kinds().
  std::size_t kind_index(std::int64_t layer, const UnquantizedLayers& unquantized = {}) const;
  /// Of the layer in each module that predicts one more token.
  LayerKind kind_of_prediction() const { return kind_of_layer(layers - 1); }
  /// What reads the embedding's table behind the layers: the modules that predict one more token,
  /// and a tied output projection.
  std::int64_t tables_behind() const { return multi_token_prediction + (ties_head() ? 1 : 0); }
  /// Whether the embedding is not trained.
  bool freezes_embedding() const { return adapters || (frozen && frozen->embedding); }
  /// Whether something before the layer is trained.
  bool is_trained_before(std::int64_t layer) const {
    if (!freezes_embedding()) return true;
    return adapters ? layer > 0 : layer > frozen->layers;
  }
  bool has_packed_samples() const { return samples && samples->are_packed(); }
  bool has_adapter(AdapterTarget target) const { return adapters && adapters->are_at(target); }
};

bool has_scale(Norm norm);
bool has_shift(Norm norm);

const yaml::Names<Norm>& yaml_names(const Norm*);
const yaml::Names<Activation>& yaml_names(const Activation*);
const yaml::Names<Positions>& yaml_names(const Positions*);
const yaml::Names<NormPlaces>& yaml_names(const NormPlaces*);
const yaml::Names<Branches>& yaml_names(const Branches*);
const yaml::Names<QkNorm>& yaml_names(const QkNorm*);
const yaml::Names<WindowKind>& yaml_names(const WindowKind*);
const yaml::Names<Router>& yaml_names(const Router*);
const yaml::Table<Model>& yaml_table(const Model*);

/// Parameters, the embedding counted once if tied, the vocabulary as given (not padded); with those
/// of the modules that predict one more token.
std::int64_t parameter_count(const Model& model);
/// Those that are trained: those of the adapters, where there are any; never sines of positions.
std::int64_t trained_parameter_count(const Model& model);
/// Those that take part in a token's result: of routed experts, the ones it is routed to.
std::int64_t active_parameter_count(const Model& model);

/// Arithmetic of one forward and backward pass over `samples` sequences, without recomputation:
/// 6 per parameter of every matrix and token, plus attention scores, 12 s^2 h per layer and sample,
/// counted whole (not halved for the causal mask), plus the output projection, once more for each
/// module that predicts one more token, whose layer and projection count likewise. Of routed
/// experts those count that a token is routed to; of scores those of a window, likewise twice: w
/// (2s - w) of a sliding one in place of s^2, s w of chunks, those within each of packed samples; h
/// is the mean width of keys and of values. Of a frozen matrix 4 per parameter: it has no gradient;
/// 2 in layers that nothing runs back through, whose scores count a third. Layers of an encoder
/// count by its own sequence, attention to it by both; a scan counts 3 times what its forward pass
/// takes (scan_flops_per_token). A matrix that reads pixels or frames of sound counts 4 per
/// parameter: these have no gradient. Source: Narayanan et al., "Efficient large-scale language
/// model training on GPU clusters using Megatron-LM", SC 2021, appendix (its 96 B s l h^2 (...) is
/// this with one more forward pass).
Flops model_flops(const Model& model, double samples);
/// The forward pass's part of it: 2 per parameter and a third of attention, each of whose products
/// has two in the backward pass.
Flops forward_flops(const Model& model, double samples);

/// \return kInvalidInput if hyper-parameters contradict each other (heads that do not divide the
///     hidden size, kv_heads that do not divide heads, fewer learned positions than the sequence
///     has, parallel branches that are normalised afterwards, more experts for a token than a layer
///     has, a window that holds the sequence), or one of them has no meaning beside the others.
Result<Model> checked(Model model);

}  // namespace foreshard
