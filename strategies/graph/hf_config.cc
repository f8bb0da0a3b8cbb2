#include "strategies/graph/hf_config.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <utility>

#include "base/grouped.h"
#include "base/text.h"

#include "strategies/graph/internal/hf_types.h"

namespace foreshard {
namespace {

using internal::HfKeys;
using internal::HfType;
using Json = nlohmann::json;

constexpr std::int64_t kDefaultSequence = 2048;

// How the names of decoders with a language-model head end.
constexpr std::string_view kDecoders[]{"ForCausalLM", "LMHeadModel", "ChatGLMModel",
                                       "ChatGLMForConditionalGeneration"};

const std::vector<HfType>& hf_types() {
  static const std::vector<HfType> all = [] {
    std::vector<HfType> list = internal::llama_types();
    std::ranges::move(internal::gpt_types(), std::back_inserter(list));
    return list;
  }();
  return all;
}

// The first word of each is the name in Transformers.
const HfType* find_hf_type(const std::string& name) {
  const auto place = std::ranges::find_if(hf_types(), [&](const HfType& type) {
    return fmt::format(" {} ", type.name).find(fmt::format(" {} ", name)) != std::string::npos;
  });
  return place == hf_types().end() ? nullptr : &*place;
}

class HfConfigReader {
 public:
  HfConfigReader(const Json& json, const HfType& type) : keys_(json), type_(type) {}

  Result<HfModel> read(std::string name, std::optional<std::int64_t> sequence) {
    HfModel read{.model = type_.rest};
    Model& model = read.model;
    model.layers = keys_.size(type_.layers);
    model.hidden = keys_.size(type_.hidden);
    model.heads = keys_.size(type_.heads);
    model.kv_heads = keys_.size(type_.kv_heads);
    model.head_dim = keys_.size(type_.head_dim);
    model.ffn = keys_.size(type_.ffn);
    model.vocabulary = keys_.size(type_.vocabulary);
    model.tied_embeddings = keys_.flag("tie_word_embeddings", model.tied_embeddings);
    model.attention_bias =
        bias("attention_bias", type_.states_attention_bias, model.attention_bias);
    model.mlp_bias = bias("mlp_bias", type_.states_mlp_bias, model.mlp_bias);
    model.dropout = keys_.any_positive(type_.dropouts, model.dropout);
    if (type_.more != nullptr) type_.more(keys_, model);
    check_activation();
    check_quantisation();
    set_sequence(read, sequence);
    remark_on_class(read);
    remark_on_rotation(read);
    check_attention(model);
    FORESHARD_TRY(keys_.error());
    model.source = fmt::format("config.json of {} (model_type {})", name, type_name());
    model.name = std::move(name);
    FORESHARD_ASSIGN(read.model, checked(std::move(model)));
    return read;
  }

 private:
  std::string_view type_name() const { return type_.name.substr(0, type_.name.find(' ')); }

  // With positions from a table, what lies beyond the sequence is trained too, if by nothing.
  void set_sequence(HfModel& read, std::optional<std::int64_t> wanted) {
    Model& model = read.model;
    const bool table = model.positions == Positions::kLearned;
    const bool limited = type_.longest.key != nullptr && model.positions != Positions::kNone;
    const std::int64_t longest = limited ? keys_.size(type_.longest) : 0;
    model.sequence = wanted.value_or(table ? longest : kDefaultSequence);
    if (longest > 0 && model.sequence > longest) {
      read.remarks.push_back(fmt::format("the sequence is {} tokens, not {}: '{}' has no more",
                                         longest, model.sequence, key_in_file(type_.longest.key)));
      model.sequence = longest;
    }
    const std::int64_t rows = longest + type_.further_positions;
    if (table && rows != model.sequence) model.position_table = rows;
  }

  // Other heads, and classes of code that is not in Transformers.
  void remark_on_class(HfModel& read) const {
    const Json* list = keys_.find("architectures");
    const bool listed = list != nullptr && list->is_array() && !list->empty();
    const Json* name = listed ? &list->front() : keys_.find_in("auto_map", "AutoModelForCausalLM");
    if (name == nullptr || !name->is_string()) return;
    const auto path = name->get<std::string>();
    const std::string last = path.substr(path.rfind('.') + 1);
    if (std::ranges::any_of(kDecoders, [&](auto end) { return last.ends_with(end); })) return;
    read.remarks.push_back(
        fmt::format("the file is of class '{}' ('{}'), but read as the decoder of model_type '{}' "
                    "with a language-model head; what else that class has is not in the prediction",
                    last, listed ? "architectures" : "auto_map", type_name()));
  }

  // All layers of a model are alike.
  void remark_on_rotation(HfModel& read) {
    if (type_.unrotated.value == 0) return;
    const std::int64_t layers = read.model.layers;
    std::int64_t without = layers / keys_.size(type_.unrotated);
    if (const Json* list = keys_.find("no_rope_layers")) {
      if (!list->is_array() || std::ssize(*list) < layers)
        return keys_.fault(
            fmt::format("'no_rope_layers' is not a list of 0 or 1 for each of {} layers", layers));
      without = std::count(list->begin(), list->begin() + layers, Json(0));
    }
    if (without == 0) return;
    read.remarks.push_back(
        fmt::format("{} of {} layers have no rotary positions; all are predicted with them, which "
                    "takes a little longer",
                    without, layers));
  }

  // Of several names of a key, the one in the file, or else the first.
  std::string key_in_file(std::string_view names) const {
    std::string first;
    while (!names.empty()) {
      const std::size_t blank = names.find(' ');
      const std::string name(names.substr(0, blank));
      if (keys_.find(name) != nullptr) return name;
      if (first.empty()) first = name;
      names.remove_prefix(blank == std::string_view::npos ? names.size() : blank + 1);
    }
    return first;
  }

  bool bias(const char* key, bool states, bool otherwise) {
    const bool stated = keys_.flag(key, otherwise);
    if (stated && !otherwise && !states)
      keys_.refuse(
          fmt::format("'{}' is true, but models of type '{}' have no such bias; remove "
                      "the key",
                      key, type_name()));
    return stated;
  }

  void check_activation() {
    const Json* value = type_.activation == nullptr ? nullptr : keys_.find(type_.activation);
    if (value == nullptr) return;
    if (value->is_string() &&
        type_.activations.find(" " + value->get<std::string>() + " ") != std::string_view::npos)
      return;
    keys_.refuse(fmt::format("'{}' is {}, which is not modelled for type '{}'; modelled are:{}",
                             key_in_file(type_.activation), value->dump(), type_name(),
                             type_.activations));
  }

  void check_quantisation() {
    const Json* value = keys_.find("quantization_config");
    if (value == nullptr) return;
    const auto method = value->is_object() ? value->find("quant_method") : value->end();
    const bool named = value->is_object() && method != value->end() && method->is_string();
    keys_.refuse(
        fmt::format("'quantization_config'{}: quantised weights are not modelled; give the "
                    "config.json of the model before quantisation, or remove the key",
                    named ? " (" + method->get<std::string>() + ")" : ""));
  }

  // What is modelled is attention over the whole sequence, in every layer.
  void check_attention(const Model& model) {
    if (keys_.flag("add_cross_attention", false))
      keys_.refuse(
          "'add_cross_attention' is true: cross-attention is not modelled; predict the decoder "
          "alone with a copy of the file where it is false");
    const std::int64_t window = sliding_window();
    const bool has_chunks = keys_.find("attention_chunk_size") != nullptr;
    const std::int64_t chunk = has_chunks ? keys_.size({"attention_chunk_size", 0}) : 0;
    bool slides = window > 0;
    bool chunks = chunk > 0;
    if (keys_.find("layer_types") != nullptr) {
      const auto kinds = layer_types(model.layers);
      slides = kinds.contains("sliding_attention");
      chunks = kinds.contains("chunked_attention");
      if (slides && window == 0)
        keys_.fault(
            "'layer_types' has 'sliding_attention', but the file gives no "
            "'sliding_window'");
      if (chunks && chunk == 0)
        keys_.fault(
            "'layer_types' has 'chunked_attention', but the file gives no "
            "'attention_chunk_size'");
    } else {
      slides = slides && keys_.size({"max_window_layers", type_.full_layers}, 0) < model.layers;
    }
    if (slides) refuse_part("sliding_window", window, "a window", model.sequence);
    if (chunks) refuse_part("attention_chunk_size", chunk, "chunks", model.sequence);
    // GPT-Neo: "global" and "local" layers take turns.
    const Json* kinds = keys_.find("attention_types attention_layers");
    if (type_name() == "gpt_neo" &&
        (kinds == nullptr || kinds->dump().find("local") != std::string::npos))
      refuse_part("window_size", keys_.size({"window_size", 256}), "a window", model.sequence);
  }

  // A window or chunk that holds the whole sequence changes nothing.
  void refuse_part(const char* key, std::int64_t tokens, const char* what, std::int64_t sequence) {
    if (tokens + type_.beyond_window >= sequence) return;
    keys_.refuse(fmt::format(
        "'{0}' is {1}, less than the sequence of {2} tokens: attention within {3} is not modelled; "
        "give a sequence of at most {4} tokens (--set huggingface.sequence={1} for a study, --set "
        "sequence={1} for the file itself), or a "
        "copy of the file without '{0}' to predict attention over the whole sequence",
        key, tokens, grouped(sequence), what, grouped(tokens)));
  }

  // In tokens; 0: none.
  std::int64_t sliding_window() {
    if (!keys_.flag("use_sliding_window", type_.slides)) return 0;
    if (!keys_.has("sliding_window")) return type_.window;
    return keys_.find("sliding_window") == nullptr ? 0 : keys_.size({"sliding_window", 0});
  }

  // The kinds of attention that the layers have.
  std::set<std::string> layer_types(std::int64_t layers) {
    std::set<std::string> kinds;
    const Json& list = *keys_.find("layer_types");
    if (!list.is_array() || std::ssize(list) != layers) {
      keys_.fault(
          fmt::format("'layer_types' is not a list of one word for each of {} layers", layers));
      return kinds;
    }
    for (const Json& each : list) {
      const std::string kind = each.is_string() ? each.get<std::string>() : each.dump();
      if (kind != "full_attention" && kind != "sliding_attention" && kind != "chunked_attention")
        keys_.refuse(
            fmt::format("'layer_types' has '{}': layers other than of full attention are "
                        "not modelled",
                        kind));
      kinds.insert(kind);
    }
    return kinds;
  }

  HfKeys keys_;
  const HfType& type_;
};

// Why the file is of no dense decoder, if it is of none.
Status refusal_of_config(const Json& json, const std::string& type) {
  const HfType* known = find_hf_type(type);
  const auto features =
      internal::unmodelled_features(HfKeys(json), type, known != nullptr && known->experts);
  const bool parts = json.contains("text_config");
  if (!features.empty())
    return Error{Error::Code::kUnsupported,
                 fmt::format("'model_type' is '{}' with {}, which {} not modelled{}", type,
                             fmt::join(features, " and "), features.size() == 1 ? "is" : "are",
                             parts ? "; the decoder alone may be: give 'text_config' as a file of "
                                     "its own"
                                   : "")};
  if (known != nullptr) return {};
  std::vector<std::string> names;
  for (const HfType& each : hf_types())
    names.emplace_back(each.name.substr(0, each.name.find(' ')));
  return Error{
      Error::Code::kUnsupported,
      fmt::format("'model_type' is '{}', which is not modelled; a dense decoder's sizes may be "
                  "written as a model of one's own (foreshard schema model); modelled are {}",
                  type, fmt::join(names, ", "))};
}

}  // namespace

bool looks_like_hf_config(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos || text[begin] != '{') return false;
  return std::ranges::any_of(std::array{"\"model_type\"", "\"architectures\"",
                                        "\"transformers_version\"", "\"peft_type\""},
                             [&](const char* key) { return text.find(key) != text.npos; });
}

Result<HfModel> read_hf_config(std::string_view json_text, std::string name,
                               std::optional<std::int64_t> sequence) {
  const auto fault = [](std::string message) {
    return Error{Error::Code::kInvalidInput, std::move(message)};
  };
  const Json json = Json::parse(json_text, nullptr, false);
  if (json.is_discarded()) return fault("this is not JSON");
  if (!json.is_object()) return fault("this is not a JSON object");
  if (sequence && *sequence < 1)
    return fault(fmt::format("a sequence of {} tokens is too short", *sequence));
  if (json.contains("peft_type"))
    return Error{Error::Code::kUnsupported,
                 "this is an adapter of PEFT ('peft_type'), which foreshard does not model; the "
                 "config.json of its base model describes the model without it"};
  const auto place = json.find("model_type");
  if (place == json.end() || !place->is_string())
    return fault("the key 'model_type' is missing; 'llama' and 'gpt2', for example, are modelled");
  const auto type = place->get<std::string>();
  FORESHARD_TRY(refusal_of_config(json, type));
  return HfConfigReader(json, *find_hf_type(type)).read(std::move(name), sequence);
}

}  // namespace foreshard
