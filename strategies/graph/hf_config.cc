#include "strategies/graph/hf_config.h"

#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/grouped.h"
#include "base/text.h"

namespace foreshard {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kDefaultSequence = 2048;

/// What a size is called and what it is where the file is silent; 0: as Model has it (heads for
/// kv_heads, hidden / heads for head_dim, 4 x hidden for ffn).
struct Size {
  const char* key = nullptr;  ///< nullptr: the model type has no such key.
  std::int64_t value = 0;
};

struct ModelType {
  std::string_view name;
  Size layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
  const char* longest;  ///< The key that bounds `sequence` by a table of positions, or nullptr.
  std::int64_t longest_value;
  const char* activation;
  std::string_view activations;  ///< Those that have the kernels of `rest.activation`, with blanks.
  Model rest;                    ///< All that is no size.
  std::vector<const char*> dropouts;
  bool states_biases;            ///< It has the keys attention_bias and mlp_bias.
  std::int64_t window = 0;       ///< Of sliding attention where the file has no key; 0: none.
  bool slides = true;            ///< Whether a window is used where the file does not say.
  std::int64_t full_layers = 0;  ///< Layers before the first that slides, likewise.
};

// One line of this table for each model type.
const std::vector<ModelType>& model_types() {
  static const std::vector<ModelType> types = [] {
    Model llama;
    llama.norm = Norm::kRmsNorm;
    llama.activation = Activation::kSwiglu;
    llama.positions = Positions::kRotary;
    llama.bias = false;
    llama.tied_embeddings = false;
    llama.dropout = false;
    Model qwen = llama;
    qwen.qkv_bias = true;
    const ModelType base{.name = "llama",
                         .layers = {"num_hidden_layers", 32},
                         .hidden = {"hidden_size", 4096},
                         .heads = {"num_attention_heads", 32},
                         .kv_heads = {"num_key_value_heads", 0},
                         .head_dim = {"head_dim", 0},
                         .ffn = {"intermediate_size", 11008},
                         .vocabulary = {"vocab_size", 32000},
                         .longest = nullptr,
                         .longest_value = 0,
                         .activation = "hidden_act",
                         .activations = " silu swish ",
                         .rest = llama,
                         .dropouts = {"attention_dropout"},
                         .states_biases = true};
    ModelType mistral = base;
    mistral.name = "mistral";
    mistral.kv_heads.value = 8;
    mistral.ffn.value = 14336;
    mistral.states_biases = false;
    mistral.window = 4096;
    ModelType qwen2 = base;
    qwen2.name = "qwen2";
    qwen2.kv_heads.value = 32;
    qwen2.ffn.value = 22016;
    qwen2.vocabulary.value = 151936;
    qwen2.rest = qwen;
    qwen2.states_biases = false;
    qwen2.window = 4096;
    qwen2.slides = false;
    qwen2.full_layers = 28;
    const ModelType gpt2{.name = "gpt2",
                         .layers = {"n_layer", 12},
                         .hidden = {"n_embd", 768},
                         .heads = {"n_head", 12},
                         .kv_heads = {},
                         .head_dim = {},
                         .ffn = {"n_inner", 0},
                         .vocabulary = {"vocab_size", 50257},
                         .longest = "n_positions",
                         .longest_value = 1024,
                         .activation = "activation_function",
                         .activations = " gelu gelu_new gelu_fast gelu_pytorch_tanh relu ",
                         .rest = Model{},
                         .dropouts = {"resid_pdrop", "attn_pdrop"},
                         .states_biases = false};
    return std::vector{gpt2, base, mistral, qwen2};
  }();
  return types;
}

class HfConfigReader {
 public:
  HfConfigReader(const Json& json, const ModelType& type) : json_(json), type_(type) {}

  Result<Model> read(std::string name, std::optional<std::int64_t> sequence) {
    Model model = type_.rest;
    model.layers = size(type_.layers);
    model.hidden = size(type_.hidden);
    model.heads = size(type_.heads);
    model.kv_heads = size(type_.kv_heads);
    model.head_dim = size(type_.head_dim);
    model.ffn = size(type_.ffn);
    model.vocabulary = size(type_.vocabulary);
    model.sequence = sequence.value_or(kDefaultSequence);
    model.tied_embeddings = flag("tie_word_embeddings", model.tied_embeddings);
    model.attention_bias = bias("attention_bias");
    model.mlp_bias = bias("mlp_bias");
    model.dropout = dropout(model.dropout);
    check_activation();
    check_experts();
    check_quantisation();
    if (type_.longest != nullptr) {
      const std::int64_t longest = size({type_.longest, type_.longest_value});
      if (!sequence) model.sequence = longest;
      if (model.sequence > longest)
        fault(fmt::format("a sequence of {} tokens is longer than '{}': {}", model.sequence,
                          type_.longest, longest));
    }
    check_attention(model);
    if (error_) return *error_;
    model.source = fmt::format("config.json of {} (model_type {})", name, type_.name);
    model.name = std::move(name);
    return checked(std::move(model));
  }

 private:
  // The value of a key that is there and not null.
  const Json* find(const char* key) const {
    const auto place = json_.find(key);
    return place == json_.end() || place->is_null() ? nullptr : &*place;
  }

  std::int64_t size(const Size& wanted, std::int64_t lowest = 1) {
    if (wanted.key == nullptr) return wanted.value;
    const Json* value = find(wanted.key);
    if (value == nullptr) return wanted.value;
    constexpr std::int64_t kLargest = std::int64_t{1} << 40;
    if (value->is_number_integer()) {
      const auto number = value->get<std::int64_t>();
      if (number >= lowest && number < kLargest) return number;
    }
    fault(fmt::format("'{}' is {}, not a whole number of at least {}", wanted.key, value->dump(),
                      lowest));
    return 1;
  }

  bool flag(const char* key, bool otherwise) {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) {
      fault(fmt::format("'{}' is {}, not true or false", key, value->dump()));
      return otherwise;
    }
    return value->get<bool>();
  }

  bool bias(const char* key) {
    const bool stated = flag(key, false);
    if (stated && !type_.states_biases)
      fault(fmt::format("'{}' is true, but models of type '{}' have no such bias; remove the key",
                        key, type_.name),
            Error::Code::kUnsupported);
    return stated;
  }

  bool dropout(bool otherwise) {
    bool stated = false;
    bool any = false;
    for (const char* key : type_.dropouts) {
      const Json* value = find(key);
      if (value == nullptr) continue;
      stated = true;
      if (!value->is_number())
        fault(fmt::format("'{}' is {}, not a number", key, value->dump()));
      else
        any = any || value->get<double>() > 0;
    }
    return stated ? any : otherwise;
  }

  void check_activation() {
    const Json* value = find(type_.activation);
    if (value == nullptr) return;
    if (value->is_string() &&
        type_.activations.find(" " + value->get<std::string>() + " ") != std::string_view::npos)
      return;
    fault(fmt::format("'{}' is {}, which is not modelled for type '{}'; modelled are:{}",
                      type_.activation, value->dump(), type_.name, type_.activations),
          Error::Code::kUnsupported);
  }

  void check_experts() {
    for (const char* key : {"num_local_experts", "num_experts"}) {
      if (find(key) != nullptr && size({key, 1}) > 1)
        fault(fmt::format("'{}': mixtures of experts are not modelled", key),
              Error::Code::kUnsupported);
    }
  }

  void check_quantisation() {
    const Json* value = find("quantization_config");
    if (value == nullptr) return;
    const auto method = value->is_object() ? value->find("quant_method") : value->end();
    const bool named = value->is_object() && method != value->end() && method->is_string();
    fault(fmt::format("'quantization_config'{}: quantised weights are not modelled; give the "
                      "config.json of the model before quantisation, or remove the key",
                      named ? " (" + method->get<std::string>() + ")" : ""),
          Error::Code::kUnsupported);
  }

  // What is modelled is attention over the whole sequence, in every layer.
  void check_attention(const Model& model) {
    if (flag("add_cross_attention", false))
      fault(
          "'add_cross_attention' is true: cross-attention is not modelled; predict the decoder "
          "alone with a copy of the file where it is false",
          Error::Code::kUnsupported);
    const std::int64_t window = sliding_window();
    const std::int64_t chunk = find("attention_chunk_size") ? size({"attention_chunk_size", 0}) : 0;
    bool slides = window > 0;
    bool chunks = chunk > 0;
    if (find("layer_types") != nullptr) {
      const auto kinds = layer_types(model.layers);
      slides = kinds.contains("sliding_attention");
      chunks = kinds.contains("chunked_attention");
      if (slides && window == 0)
        fault("'layer_types' has 'sliding_attention', but the file gives no 'sliding_window'");
      if (chunks && chunk == 0)
        fault(
            "'layer_types' has 'chunked_attention', but the file gives no "
            "'attention_chunk_size'");
    } else {
      slides = slides && size({"max_window_layers", type_.full_layers}, 0) < model.layers;
    }
    if (slides) refuse_part("sliding_window", window, "a window", model.sequence);
    if (chunks) refuse_part("attention_chunk_size", chunk, "chunks", model.sequence);
  }

  // A window or chunk that holds the whole sequence changes nothing.
  void refuse_part(const char* key, std::int64_t tokens, const char* what, std::int64_t sequence) {
    if (tokens >= sequence) return;
    fault(fmt::format("'{0}' is {1}, less than the sequence of {2} tokens: attention within {3} is "
                      "not modelled; give a sequence of at most {1} tokens (in a study --set "
                      "huggingface.sequence={4}), or a copy of the file without '{0}' to predict "
                      "attention over the whole sequence",
                      key, grouped(tokens), grouped(sequence), what, tokens),
          Error::Code::kUnsupported);
  }

  // In tokens; 0: none.
  std::int64_t sliding_window() {
    if (!flag("use_sliding_window", type_.slides)) return 0;
    const auto place = json_.find("sliding_window");
    if (place == json_.end()) return type_.window;
    return place->is_null() ? 0 : size({"sliding_window", 0});
  }

  // The kinds of attention that the layers have.
  std::set<std::string> layer_types(std::int64_t layers) {
    std::set<std::string> kinds;
    const Json& list = *find("layer_types");
    if (!list.is_array() || std::ssize(list) != layers) {
      fault(fmt::format("'layer_types' is not a list of one word for each of {} layers", layers));
      return kinds;
    }
    for (const Json& each : list) {
      const std::string kind = each.is_string() ? each.get<std::string>() : each.dump();
      if (kind != "full_attention" && kind != "sliding_attention" && kind != "chunked_attention")
        fault(fmt::format("'layer_types' has '{}': layers other than of full attention are not "
                          "modelled",
                          kind),
              Error::Code::kUnsupported);
      kinds.insert(kind);
    }
    return kinds;
  }

  void fault(std::string message, Error::Code code = Error::Code::kInvalidInput) {
    if (!error_) error_ = Error{code, std::move(message)};
  }

  const Json& json_;
  const ModelType& type_;
  std::optional<Error> error_;
};

}  // namespace

Result<Model> read_hf_config(std::string_view json_text, std::string name,
                             std::optional<std::int64_t> sequence) {
  const auto fault = [](Error::Code code, std::string message) {
    return Error{code, std::move(message)};
  };
  const Json json = Json::parse(json_text, nullptr, false);
  if (json.is_discarded()) return fault(Error::Code::kInvalidInput, "this is not JSON");
  if (!json.is_object()) return fault(Error::Code::kInvalidInput, "this is not a JSON object");
  if (sequence && *sequence < 1)
    return fault(Error::Code::kInvalidInput,
                 fmt::format("a sequence of {} tokens is too short", *sequence));
  std::vector<std::string> names;
  for (const ModelType& type : model_types()) names.emplace_back(type.name);
  const auto place = json.find("model_type");
  if (place == json.end() || !place->is_string())
    return fault(Error::Code::kInvalidInput,
                 "the key 'model_type' is missing; it is one of " + quoted_choice(names));
  const auto wanted = place->get<std::string>();
  for (const ModelType& type : model_types())
    if (type.name == wanted) return HfConfigReader(json, type).read(std::move(name), sequence);
  return fault(Error::Code::kUnsupported,
               fmt::format("'model_type' is '{}', which is not modelled; modelled are {}", wanted,
                           quoted_choice(names)));
}

}  // namespace foreshard
