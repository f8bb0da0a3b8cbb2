/// \file
/// A transformer by its published hyper-parameters: decoders (GPT, Llama and their descendants),
/// encoders (BERT, ViT), and decoders with an encoder (T5, Whisper).
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
#include "strategies/graph/mamba.h"
#include "strategies/graph/quantization.h"
#include "strategies/graph/samples.h"

namespace foreshard {

enum class Norm : std::uint8_t { kLayerNorm, kRmsNorm, kLayerNormScale, kLayerNormPlain };
enum class Activation : std::uint8_t { kGelu, kSwiglu, kSquaredRelu };
enum class Positions : std::uint8_t { kLearned, kRotary, kNone, kRelative };
/// Which side of the attention and feed-forward branches is normalised.
enum class NormPlaces : std::uint8_t { kBefore, kAfter, kBoth, kAfterSum };
/// Whether the feed-forward layer follows attention or runs in parallel with it.
enum class Branches : std::uint8_t { kSequential, kParallel, kParallelOneNorm };
enum class QkNorm : std::uint8_t { kNone, kPerHead, kEveryHead, kAllHeads };
/// The kind of attention window: the last `window` tokens up to the query, or the query's chunk of
/// a sequence that is cut into chunks of `window` tokens.
enum class WindowKind : std::uint8_t { kSliding, kChunk };
enum class Router : std::uint8_t { kSoftmax, kSigmoid };

/// The part of a layer that mixes tokens.
enum class Mixer : std::uint8_t { kAttention, kMamba, kNone };

/// Properties that vary between the layers of a model.
struct LayerKind {
  bool experts = false;    ///< A mixture of experts in place of one feed-forward layer.
  bool window = false;     ///< Attention is limited to the window.
  bool unrotated = false;  ///< No rotary positions, although the model has them.
  Mixer mixer = Mixer::kAttention;
  bool feed_forward = true;  ///< The layer has a feed-forward layer or experts.
  bool encoder = false;      ///< Layer of the encoder before a decoder; reads the encoder's tokens.
  bool ends_encoder = false;  ///< Last layer of the encoder; includes the encoder's final norm.
  bool first = false;         ///< First layer of encoder or decoder; holds what the others share.
  bool frozen = false;        ///< No parameter of the layer is trained.
  bool unquantized = false;   ///< Computes in 16 bits although the recipe quantizes other layers.
  auto operator<=>(const LayerKind&) const = default;
};
/// "layer", "expert_layer", "expert_window_layer"; for layers of one branch: "mamba_layer",
/// "attention_layer", "mlp_layer", "experts_layer".
std::string name_of(LayerKind kind);

struct Model {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  /// Key and value heads; 0: as many as `heads` (multi-head attention).
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  ///< Width of a head of queries and keys; 0: hidden / heads.
  std::int64_t ffn = 0;       ///< Width of the feed-forward layer; 0: 4 x hidden.
  std::int64_t vocabulary = 0;
  std::int64_t sequence = 0;  ///< Tokens per training sample.
  Norm norm = Norm::kLayerNorm;
  Activation activation = Activation::kGelu;
  Positions positions = Positions::kLearned;
  bool bias = true;             ///< All four projections of a layer have biases.
  bool qkv_bias = false;        ///< The query, key and value projection has a bias (Qwen 2).
  bool attention_bias = false;  ///< Both projections of attention have biases.
  bool key_bias = true;         ///< Keys have a bias if queries and values do (false for Whisper).
  bool attention_out_bias = false;  ///< The output projection of attention has a bias (GPT-Neo).
  bool mlp_bias = false;            ///< Both projections of the feed-forward layer have biases.
  bool head_bias = false;           ///< The output projection of the model has a bias (GPT-J).
  NormPlaces norm_places = NormPlaces::kBefore;
  Branches branches = Branches::kSequential;
  QkNorm qk_norm = QkNorm::kNone;   ///< Norm of queries and keys, before rotation.
  bool embedding_norm = false;      ///< The embedding is normalised (BLOOM).
  std::int64_t position_table = 0;  ///< Rows of the table of learned positions; 0: `sequence`.
  bool tied_embeddings = true;      ///< The output projection is the input embedding.
  bool dropout = true;              ///< Dropout on both residual branches and the attention scores.

  std::int64_t window = 0;  ///< Tokens that a query sees, itself included; 0: all before it.
  WindowKind window_kind = WindowKind::kSliding;
  std::int64_t full_layers = 0;         ///< The first `full_layers` layers see the whole sequence.
  std::int64_t full_interval = 0;       ///< Every N-th layer sees the whole sequence; 0: none.
  std::int64_t unrotated_interval = 0;  ///< Every N-th layer has no rotary positions; 0: none.
  bool sinks = false;                   ///< A learned logit beside the scores of each head.
  bool clamped_activation = false;      ///< The inputs of a SwiGLU are clamped (GPT-OSS).

  /// Width of the latents of keys and values (MLA); 0: no latents.
  std::int64_t key_value_rank = 0;
  std::int64_t query_rank = 0;  ///< Width of the latents of queries; 0: projected from the stream.
  /// Columns of a head that rotate, with latents; all key heads share these columns.
  std::int64_t rotary_dim = 0;
  std::int64_t value_dim = 0;  ///< Width of a head of the values, with latents.

  std::int64_t experts = 0;            ///< Routed experts of a layer; 0: a dense model.
  std::int64_t experts_per_token = 1;  ///< Experts that each token is routed to (top-k).
  std::int64_t expert_groups = 1;      ///< Equal groups of neighbouring experts; 1: no groups.
  /// Groups that the experts of one token may lie in, at most (node-limited routing).
  std::int64_t groups_per_token = 1;
  std::int64_t expert_ffn = 0;       ///< Width of one routed expert; 0: as `ffn`.
  std::int64_t shared_ffn = 0;       ///< Width of all shared experts together; 0: none.
  std::int64_t dense_layers = 0;     ///< The first `dense_layers` layers have no experts.
  std::int64_t expert_interval = 1;  ///< Every N-th layer has experts, the others are dense.
  Router router = Router::kSoftmax;  ///< How the router's logits become weights.
  bool router_bias = false;          ///< The router's product has a bias.
  bool shared_gate = false;          ///< A learned gate on the shared experts' result (Qwen 2).
  /// A letter for each layer, which then has one branch and one norm (mamba.h): "M-M*-ME".
  std::string pattern{};
  std::optional<Mamba> mamba{};  ///< Sizes of the layers of letter M.
  /// Modules after the layers, each of which predicts one more token (MTP of DeepSeek-V3).
  std::int64_t multi_token_prediction = 0;
  bool causal = true;  ///< A token sees only earlier tokens; false: all, as in an encoder.
  std::int64_t token_types = 0;  ///< Rows of a table of token types (segments); 0: no table.
  Head head = Head::kLanguage;   ///< Computed from the final state of every token.
  bool pooler = false;           ///< A product and tanh on the first token's state (BERT).
  std::int64_t classes = 0;  ///< Output classes, predicted from the first token or from the pooler.
  std::optional<Image> image{};        ///< Images that the model reads in place of tokens.
  std::optional<Encoder> encoder{};    ///< Encoder whose states the decoder attends to.
  std::optional<Adapters> adapters{};  ///< Only these are trained; nothing: all parameters are.
  std::optional<Frozen> frozen{};      ///< Parts that are not trained; nothing: all are trained.
  std::optional<Samples> samples{};    ///< Lengths of samples; nothing: all have length `sequence`.
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
  /// Tokens per sample that a layer of the kind works on.
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
  /// The kinds of layers that the model has, ascending: dense kinds first.
  std::vector<LayerKind> layer_kinds(const UnquantizedLayers& unquantized = {}) const;
  bool has_dense_layers() const;  ///< Some layer has one feed-forward layer.
  bool has_expert_layers() const;
  bool has_mixer(Mixer mixer) const;  ///< Some layer has this mixer.
  /// Index into layer_kinds().
  std::size_t kind_index(std::int64_t layer, const UnquantizedLayers& unquantized = {}) const;
  /// Kind of the layer in each module that predicts one more token.
  LayerKind kind_of_prediction() const { return kind_of_layer(layers - 1); }
  /// How many readers the embedding's table has after the layers: the modules that predict one more
  /// token, and a tied output projection.
  std::int64_t tables_behind() const { return multi_token_prediction + (ties_head() ? 1 : 0); }
  /// Whether the embedding is frozen.
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

/// Parameters of the model: the embedding counts once if tied, the vocabulary as given (not
/// padded); the modules that predict one more token are included.
std::int64_t parameter_count(const Model& model);
/// Trained parameters: only the adapters' if the model has adapters; else all but the frozen parts
/// and the sines of positions.
std::int64_t trained_parameter_count(const Model& model);
/// Parameters that take part in a token's result: routed experts count only if the token is routed
/// to them.
std::int64_t active_parameter_count(const Model& model);

/// Arithmetic of one forward and backward pass over `samples` sequences, without recomputation:
/// - matrices: 6 operations per parameter and token. Routed experts count only for the tokens that
///   are routed to them. The output projection counts once more for each module that predicts one
///   more token; the module's layer and projection count as other matrices do;
/// - frozen matrices: 4 per parameter and token (no gradient of the weight); 2 in layers through
///   which nothing runs backward, whose scores count a third. Matrices that read pixels or frames
///   of sound: 4 per parameter (no gradient of the input);
/// - attention scores: 12 s^2 h per layer and sample, counted whole (not halved for the causal
///   mask); h is the number of heads times the mean width of a head's keys and values. A sliding
///   window has w (2s - w) in place of s^2, chunks have s w, packed samples the scores within each
///   sample, also not halved;
/// - layers of an encoder: with the encoder's sequence; cross-attention: with both sequences;
/// - a scan: 7 operations for each number of the state and token, 3 times.
/// Source: Narayanan et al., "Efficient large-scale language model training on GPU clusters using
/// Megatron-LM", SC 2021, appendix (its 96 B s l h^2 (...) is this with one more forward pass).
Flops model_flops(const Model& model, double samples);
/// The forward part of model_flops(): 2 per parameter, and a third of attention (each product of
/// the forward pass has two in the backward pass).
Flops forward_flops(const Model& model, double samples);

/// Checks the hyper-parameters and returns the model.
/// \return kInvalidInput if hyper-parameters contradict each other (heads that do not divide the
///     hidden size, kv_heads that do not divide heads, fewer learned positions than the sequence
///     has, parallel branches that are normalised afterwards, more experts for a token than a layer
///     has, a window that holds the sequence), or if one of them has no effect beside the others.
Result<Model> checked(Model model);

/// Whether a layer has one branch, with one norm: only attention, Mamba, a feed-forward layer or
/// experts.
bool has_one_branch(LayerKind kind);

/// What is wrong with the pattern of a model, with keys that the pattern needs, or with keys that
/// have no effect beside it; empty if nothing is.
std::string pattern_fault(const Model& model);

}  // namespace foreshard
