#include "strategies/graph/hf_config.h"

#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"

namespace foreshard {
namespace {

using Json = nlohmann::json;

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
  const char* bias;  ///< The key of a bias of queries, keys and values, or nullptr.
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
                         .bias = "attention_bias"};
    ModelType mistral = base;
    mistral.name = "mistral";
    mistral.kv_heads.value = 8;
    mistral.ffn.value = 14336;
    mistral.bias = nullptr;
    ModelType qwen2 = base;
    qwen2.name = "qwen2";
    qwen2.kv_heads.value = 32;
    qwen2.ffn.value = 22016;
    qwen2.vocabulary.value = 151936;
    qwen2.rest = qwen;
    qwen2.bias = nullptr;
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
                         .bias = nullptr};
    return std::vector{gpt2, base, mistral, qwen2};
  }();
  return types;
}

class Reader {
 public:
  Reader(const Json& json, const ModelType& type) : json_(json), type_(type) {}

  Result<Model> read(std::string name, std::int64_t sequence) {
    Model model = type_.rest;
    model.layers = size(type_.layers);
    model.hidden = size(type_.hidden);
    model.heads = size(type_.heads);
    model.kv_heads = size(type_.kv_heads);
    model.head_dim = size(type_.head_dim);
    model.ffn = size(type_.ffn);
    model.vocabulary = size(type_.vocabulary);
    model.sequence = sequence;
    model.tied_embeddings = flag("tie_word_embeddings", model.tied_embeddings);
    if (type_.bias != nullptr) model.qkv_bias = flag(type_.bias, false);
    model.dropout = dropout(model.dropout);
    check_activation();
    check_experts();
    if (type_.longest != nullptr) {
      const std::int64_t longest = size({type_.longest, type_.longest_value});
      if (sequence > longest)
        fault(fmt::format("a sequence of {} tokens is longer than '{}': {}", sequence,
                          type_.longest, longest));
    }
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

  std::int64_t size(const Size& wanted) {
    if (wanted.key == nullptr) return wanted.value;
    const Json* value = find(wanted.key);
    if (value == nullptr) return wanted.value;
    constexpr std::int64_t kLargest = std::int64_t{1} << 40;
    if (value->is_number_integer()) {
      const auto number = value->get<std::int64_t>();
      if (number > 0 && number < kLargest) return number;
    }
    fault(fmt::format("'{}' is {}, not a whole number above 0", wanted.key, value->dump()));
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
    fault(fmt::format("'{}' is {}; of {} models there are only:{}", type_.activation, value->dump(),
                      type_.name, type_.activations),
          Error::Code::kUnsupported);
  }

  void check_experts() {
    for (const char* key : {"num_local_experts", "num_experts"}) {
      if (find(key) != nullptr && size({key, 1}) > 1)
        fault(fmt::format("'{}': mixtures of experts are not supported", key),
              Error::Code::kUnsupported);
    }
  }

  void fault(std::string message, Error::Code code = Error::Code::kInvalidInput) {
    if (!error_) error_ = Error{code, std::move(message)};
  }

  const Json& json_;
  const ModelType& type_;
  std::optional<Error> error_;
};

}  // namespace

Result<Model> read_hf_config(std::string_view json_text, std::string name, std::int64_t sequence) {
  const auto fault = [](Error::Code code, std::string message) {
    return Error{code, std::move(message)};
  };
  const Json json = Json::parse(json_text, nullptr, false);
  if (json.is_discarded()) return fault(Error::Code::kInvalidInput, "this is not JSON");
  if (!json.is_object()) return fault(Error::Code::kInvalidInput, "this is no JSON object");
  if (sequence < 1)
    return fault(Error::Code::kInvalidInput,
                 fmt::format("a sequence of {} tokens is too short", sequence));
  std::vector<std::string> names;
  for (const ModelType& type : model_types()) names.emplace_back(type.name);
  const auto place = json.find("model_type");
  if (place == json.end() || !place->is_string())
    return fault(Error::Code::kInvalidInput,
                 "the key 'model_type' is missing; it is one of " + quoted_choice(names));
  const auto wanted = place->get<std::string>();
  for (const ModelType& type : model_types())
    if (type.name == wanted) return Reader(json, type).read(std::move(name), sequence);
  return fault(Error::Code::kUnsupported,
               fmt::format("'model_type' is '{}'; there are {}", wanted, quoted_choice(names)));
}

}  // namespace foreshard
