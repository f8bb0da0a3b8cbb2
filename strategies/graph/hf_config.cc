#include "strategies/graph/hf_config.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "base/grouped.h"
#include "base/json.h"
#include "base/text.h"

#include "strategies/graph/internal/hf_rules.h"

namespace foreshard {
namespace {

using internal::HfKeys;
using Json = nlohmann::json;

constexpr std::int64_t kDefaultSequence = 2048;

// How the names of decoders with a language-model head end.
constexpr std::string_view kDecoders[]{"ForCausalLM", "LMHeadModel", "ChatGLMModel",
                                       "ChatGLMForConditionalGeneration"};

class HfConfigReader {
 public:
  HfConfigReader(const Json& json, const HfType& type) : keys_(json), type_(type) {}

  Result<HfModel> read(std::string name, std::optional<std::int64_t> sequence, bool extend) {
    HfModel read;
    Model& model = read.model;
    internal::read_type(keys_, type_, model);
    check_activation();
    check_quantisation(read);
    set_sequence(read, sequence, extend);
    remark_on_class(read);
    remark_on_prediction(read);
    set_rotation(model);
    check_cross_attention();
    set_windows(model);
    FORESHARD_TRY(keys_.error());
    model.source = fmt::format("config.json of {} (model_type {})", name, type_.name);
    model.name = std::move(name);
    FORESHARD_ASSIGN(read.model, checked(std::move(model)));
    return read;
  }

 private:
  // With positions from a table, what lies beyond the sequence is trained too, if by nothing.
  void set_sequence(HfModel& read, std::optional<std::int64_t> wanted, bool extend) {
    Model& model = read.model;
    if (model.image) return set_image_tokens(read, wanted);
    if (model.encoder && model.encoder->mel_bins == 0) return set_both_sequences(read, wanted);
    const bool table = model.positions == Positions::kLearned;
    const bool limited = type_.longest && type_.longest->key && model.positions != Positions::kNone;
    std::int64_t longest = limited ? longest_stated() : 0;
    const std::int64_t usual = longest > 0 ? std::min(longest, kDefaultSequence) : kDefaultSequence;
    model.sequence = wanted.value_or(table ? longest : usual);
    if (longest > 0 && model.sequence > longest) {
      const std::string key = keys_.stated_key(type_.longest->keys());
      if (!extend)
        return keys_.fault(fmt::format(
            "'{}' gives the model {} positions, and the sequence has {} tokens; ask for no more "
            "(--set huggingface.sequence={}), or, for a run that extends its positions, say so "
            "(--set huggingface.extend=true)",
            key, grouped(longest), grouped(model.sequence), longest));
      read.remarks.push_back(fmt::format("positions are extended from {} ('{}') to {} tokens",
                                         grouped(longest), key, grouped(model.sequence)));
      longest = model.sequence;
    }
    const std::int64_t rows = longest + type_.further_positions;
    if (table && rows != model.sequence) model.position_table = rows;
  }

  // With what the file's own scaling of rotary positions makes of it: a factor of the positions
  // that the model was trained with first, or else of those stated.
  std::int64_t longest_stated() {
    const std::int64_t stated = keys_.size(type_.longest);
    for (const char* scaling : {"rope_scaling", "rope_parameters"}) {
      const Json* factor = keys_.find(fmt::format("{}.factor", scaling));
      if (factor == nullptr || !factor->is_number()) continue;
      const std::int64_t first =
          keys_.size({fmt::format("{}.original_max_position_embeddings", scaling)}, stated);
      const double scaled = factor->get<double>() * static_cast<double>(first);
      constexpr double kMost = 1LL << 40;
      if (scaled > static_cast<double>(stated) && scaled <= kMost)
        return static_cast<std::int64_t>(scaled);
    }
    return stated;
  }

  static void set_image_tokens(HfModel& read, std::optional<std::int64_t> wanted) {
    Model& model = read.model;
    model.sequence = model.image->tokens();
    if (wanted && *wanted != model.sequence)
      read.remarks.push_back(fmt::format("the sequence is the {} tokens that an image has, not {}",
                                         model.sequence, *wanted));
  }

  static void set_both_sequences(HfModel& read, std::optional<std::int64_t> wanted) {
    Model& model = read.model;
    model.sequence = wanted.value_or(model.encoder->sequence);
    model.encoder->sequence = model.sequence;
    read.remarks.push_back(fmt::format(
        "encoder and decoder read {} tokens each of a sample, as the file does not say; set "
        "encoder.sequence in a model of one's own for others",
        model.sequence));
  }

  // Other heads, and classes of code that is not in Transformers.
  void remark_on_class(HfModel& read) {
    const Json* list = keys_.find("architectures");
    const bool listed = list != nullptr && list->is_array() && !list->empty();
    const Json* name = listed ? &list->front() : keys_.find("auto_map.AutoModelForCausalLM");
    if (name == nullptr || !name->is_string()) return;
    const auto path = name->get<std::string>();
    const std::string last = path.substr(path.rfind('.') + 1);
    if (std::ranges::find(type_.classes, last, &HfClass::name) != type_.classes.end()) return;
    if (!type_.classes.empty()) {
      std::vector<std::string> names;
      for (const HfClass& each : type_.classes) names.push_back(each.name);
      return keys_.refuse(fmt::format("class '{}' is not modelled; of model_type '{}' are: {}",
                                      last, type_.name, fmt::join(names, " ")));
    }
    if (std::ranges::any_of(kDecoders, [&](auto end) { return last.ends_with(end); })) return;
    read.remarks.push_back(
        fmt::format("the file is of class '{}' ('{}'), but read as the decoder of model_type '{}' "
                    "with a language-model head; what else that class has is not in the prediction",
                    last, listed ? "architectures" : "auto_map", type_.name));
  }

  // Modules that predict tokens behind the next are trained beside the model, or not: Transformers
  // leaves their weights out (models/deepseek_v3/modeling_deepseek_v3.py,
  // _keys_to_ignore_on_load_unexpected).
  void remark_on_prediction(HfModel& read) {
    const std::int64_t modules = keys_.size("num_nextn_predict_layers", 0, 0);
    if (modules == 0) return;
    read.remarks.push_back(fmt::format(
        "{} {} that predict{} tokens behind the next ('num_nextn_predict_layers') "
        "{} not in the prediction, as Transformers does not train {}; to predict training with {}, "
        "set multi_token_prediction: {}",
        modules, plural(modules, "module"), modules == 1 ? "s" : "", modules == 1 ? "is" : "are",
        modules == 1 ? "it" : "them", modules == 1 ? "it" : "them", modules));
  }

  // A list has 0 for a layer without rotary positions.
  void set_rotation(Model& model) {
    if (!type_.unrotated) return;
    model.unrotated_interval = keys_.size(type_.unrotated);
    const Json* list = keys_.find("no_rope_layers");
    if (list != nullptr && !list->empty()) {
      if (!list->is_array() || std::ssize(*list) < model.layers)
        return keys_.fault(fmt::format(
            "'no_rope_layers' is not a list of 0 or 1 for each of {} layers", model.layers));
      const auto first = std::ranges::find(*list, Json(0));
      model.unrotated_interval = first - list->begin() + 1;
      for (std::int64_t layer = 0; layer < model.layers; ++layer)
        if (model.kind_of_layer(layer).unrotated !=
            ((*list)[static_cast<std::size_t>(layer)] == Json(0)))
          return keys_.refuse(
              "'no_rope_layers' names others than of every so many layers the last, which is not "
              "modelled");
    }
    if (model.unrotated_interval > model.layers) model.unrotated_interval = 0;
  }

  void check_activation() {
    const auto& activation = type_.activation;
    if (!activation || !activation->key) return;
    std::string key;
    const Json* value = keys_.find_first(activation->key->words, &key);
    if (value == nullptr) return;
    const auto& known = activation->words;
    if (value->is_string() && std::ranges::find(known, value->get<std::string>()) != known.end())
      return;
    keys_.refuse(fmt::format("'{}' is {}, which is not modelled for type '{}'; modelled are: {}",
                             key, value->dump(), type_.name, fmt::join(known, " ")));
  }

  // Of some models the weights are published in a narrow type alone.
  void check_quantisation(HfModel& read) {
    const Json* value = keys_.find("quantization_config");
    if (value == nullptr) return;
    const auto method = value->is_object() ? value->find("quant_method") : value->end();
    const bool named = value->is_object() && method != value->end() && method->is_string();
    const std::string name = named ? method->get<std::string>() : "";
    if (name == "fp8" || name == "mxfp4") {
      read.remarks.push_back(fmt::format(
          "the weights of the file are {} ('quantization_config'); the prediction is of parameters "
          "in the strategy's precision",
          name));
      return;
    }
    keys_.refuse(
        fmt::format("'quantization_config'{}: quantised weights are not modelled; give the "
                    "config.json of the model before quantisation, or remove the key",
                    named ? " (" + name + ")" : ""));
  }

  void check_cross_attention() {
    if (keys_.flag("add_cross_attention", false))
      keys_.refuse(
          "'add_cross_attention' is true: cross-attention is not modelled; predict the decoder "
          "alone with a copy of the file where it is false");
  }

  // A window or chunk that holds the whole sequence changes nothing.
  void set_windows(Model& model) {
    const std::int64_t window = sliding_window();
    const std::int64_t chunk =
        keys_.has("attention_chunk_size") && keys_.find("attention_chunk_size") == nullptr
            ? 0
            : keys_.size("attention_chunk_size", type_.chunk);
    const auto kinds = kinds_of_layers(model.layers, window, chunk);
    const auto has = [&](const char* kind) {
      return std::ranges::find(kinds, kind) != kinds.end();
    };
    const bool slides = has("sliding_attention");
    const bool chunks = has("chunked_attention");
    if (slides && window == 0)
      return keys_.fault(
          "'layer_types' has 'sliding_attention', but the file gives no 'sliding_window'");
    if (chunks && chunk == 0)
      return keys_.fault(
          "'layer_types' has 'chunked_attention', but the file gives no 'attention_chunk_size'");
    if (slides && chunks)
      return keys_.refuse("'layer_types' has windows and chunks, which is not modelled");
    const std::int64_t tokens = slides ? window : chunks ? chunk : 0;
    check_alternation(model.sequence);
    if (tokens == 0 || tokens >= model.sequence) return;
    model.window = tokens;
    model.window_kind = slides ? WindowKind::kSliding : WindowKind::kChunk;
    set_full_layers(model, kinds);
  }

  void set_full_layers(Model& model, const std::vector<std::string>& kinds) {
    const auto is_full = [](const std::string& kind) { return kind == "full_attention"; };
    const auto first_window = std::ranges::find_if_not(kinds, is_full);
    const auto next_full = std::find_if(first_window, kinds.end(), is_full);
    model.full_layers = first_window - kinds.begin();
    if (next_full != kinds.end()) model.full_interval = next_full - kinds.begin() + 1;
    for (std::size_t layer = 0; layer < kinds.size(); ++layer)
      if (model.kind_of_layer(static_cast<std::int64_t>(layer)).window == is_full(kinds[layer]))
        return keys_.refuse(
            "'layer_types' has full attention in others than the first layers and of every so many "
            "layers the last, which is not modelled");
  }

  // "global" and "local" layers take turns, a global one first.
  void check_alternation(std::int64_t sequence) {
    const Json* kinds = keys_.find_first({"attention_types", "attention_layers"});
    if (!type_.alternating_window ||
        (kinds != nullptr && kinds->dump().find("local") == std::string::npos))
      return;
    const std::int64_t window = keys_.size(type_.alternating_window);
    if (window >= sequence) return;
    keys_.refuse(fmt::format(
        "'{3}' is {0}, less than the sequence of {1} tokens, in every second layer from "
        "the second on, which is not modelled; give a sequence of at most {2} tokens (--set "
        "huggingface.sequence={0} for a study, --set sequence={0} for the file itself)",
        window, grouped(sequence), grouped(window),
        keys_.stated_key(type_.alternating_window->keys())));
  }

  // In tokens that a query sees; 0: none.
  std::int64_t sliding_window() {
    if (!keys_.flag("use_sliding_window", type_.slides)) return 0;
    if (!keys_.has("sliding_window")) return type_.window;
    const bool is_stated = keys_.find("sliding_window") != nullptr;
    return is_stated ? keys_.size("sliding_window", 0) + type_.beyond_window : 0;
  }

  // The word of each layer, as in "layer_types".
  std::vector<std::string> kinds_of_layers(std::int64_t layers, std::int64_t window,
                                           std::int64_t chunk) {
    std::vector<std::string> kinds(static_cast<std::size_t>(layers), "full_attention");
    if (keys_.find("layer_types") != nullptr) {
      read_layer_types(kinds);
      return kinds;
    }
    const std::int64_t first =
        chunk > 0 ? 0 : keys_.size("max_window_layers", type_.full_layers, 0);
    const std::int64_t interval = keys_.size(type_.full_interval);
    for (std::int64_t layer = first; layer < layers; ++layer)
      if (interval == 0 || (layer + 1) % interval != 0)
        kinds[static_cast<std::size_t>(layer)] = chunk > 0    ? "chunked_attention"
                                                 : window > 0 ? "sliding_attention"
                                                              : "full_attention";
    return kinds;
  }

  void read_layer_types(std::vector<std::string>& kinds) {
    const Json& list = *keys_.find("layer_types");
    if (!list.is_array() || list.size() != kinds.size())
      return keys_.fault(fmt::format(
          "'layer_types' is not a list of one word for each of {} layers", kinds.size()));
    for (std::size_t layer = 0; layer < kinds.size(); ++layer) {
      const Json& each = list[layer];
      kinds[layer] = each.is_string() ? each.get<std::string>() : each.dump();
      if (kinds[layer] != "full_attention" && kinds[layer] != "sliding_attention" &&
          kinds[layer] != "chunked_attention")
        keys_.refuse(
            fmt::format("'layer_types' has '{}': layers other than of full attention are "
                        "not modelled",
                        kinds[layer]));
    }
  }

  HfKeys keys_;
  const HfType& type_;
};

// Why the file is of no model that foreshard reads, if it is of none. `type` is that of the
// catalogue, if there is one of that name.
Status refusal_of_config(const Json& json, const std::string& name, const HfType* type) {
  const auto features = internal::unmodelled_features(HfKeys(json), name, type);
  if (features.empty()) return {};
  const bool parts = json.contains("text_config");
  return Error{Error::Code::kUnsupported,
               fmt::format("'model_type' is '{}' with {}, which {} not modelled{}", name,
                           fmt::join(features, " and "), features.size() == 1 ? "is" : "are",
                           parts ? "; the decoder alone may be: give 'text_config' as a file of "
                                   "its own"
                                 : "")};
}

// The object in the text, which states a model_type.
Result<Json> parsed(std::string_view text, std::optional<std::int64_t> sequence) {
  const auto fault = [](std::string message) {
    return Error{Error::Code::kInvalidInput, std::move(message)};
  };
  FORESHARD_ASSIGN(Json json, parsed_json(text));
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
  return json;
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
                               std::optional<std::int64_t> sequence, bool extend,
                               yaml::Loader& loader) {
  FORESHARD_ASSIGN(const Json json, parsed(json_text, sequence));
  const auto type = json["model_type"].get<std::string>();
  const std::vector<std::string> known = loader.names<HfType>();
  if (std::ranges::find(known, type) != known.end()) {
    FORESHARD_ASSIGN(const HfType described, loader.read_ref<HfType>(type, "model_type"));
    FORESHARD_TRY(refusal_of_config(json, type, &described));
    return HfConfigReader(json, described).read(std::move(name), sequence, extend);
  }
  FORESHARD_TRY(refusal_of_config(json, type, nullptr));
  if (known.empty())
    return Error{Error::Code::kInvalidInput,
                 "there is no catalogue, which has the model types (huggingface/*.yaml); give its "
                 "folder with --configs DIR or $FORESHARD_CONFIGS"};
  return Error{
      Error::Code::kUnsupported,
      fmt::format("'model_type' is '{}', which is not modelled; a dense decoder's sizes may be "
                  "written as a model of one's own (foreshard schema model); modelled are {}",
                  type, fmt::join(known, ", "))};
}

Result<HfModel> read_hf_config(std::string_view json_text, std::string name,
                               std::optional<std::int64_t> sequence, bool extend,
                               const HfType& type) {
  FORESHARD_ASSIGN(const Json json, parsed(json_text, sequence));
  FORESHARD_TRY(refusal_of_config(json, json["model_type"].get<std::string>(), &type));
  return HfConfigReader(json, type).read(std::move(name), sequence, extend);
}

}  // namespace foreshard
