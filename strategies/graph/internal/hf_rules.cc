#include "strategies/graph/internal/hf_rules.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace foreshard::internal {
namespace {

// The value as the file has it, shortened.
std::string brief(const HfKeys::Json& value) {
  constexpr std::size_t kMost = 60;
  std::string text = value.dump();
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

}  // namespace

const HfKeys::Json* HfKeys::find(std::string_view key) const {
  const Json* object = &json_;
  for (;;) {
    const std::size_t dot = key.find('.');
    const auto place = object->find(key.substr(0, dot));
    if (place == object->end() || place->is_null()) return nullptr;
    if (dot == std::string_view::npos) return &*place;
    if (!place->is_object()) return nullptr;
    object = &*place;
    key.remove_prefix(dot + 1);
  }
}

const HfKeys::Json* HfKeys::find_first(const std::vector<std::string>& keys,
                                       std::string* key) const {
  for (const std::string& each : keys) {
    const Json* value = find(each);
    if (value == nullptr) continue;
    if (key != nullptr) *key = each;
    return value;
  }
  return nullptr;
}

std::string HfKeys::stated_key(const std::vector<std::string>& keys) const {
  std::string key = keys.empty() ? std::string() : keys.front();
  find_first(keys, &key);
  return key;
}

std::int64_t HfKeys::size(const std::vector<std::string>& keys, std::int64_t otherwise,
                          std::int64_t lowest, std::int64_t most) {
  std::string key;
  const Json* value = find_first(keys, &key);
  if (value == nullptr) return otherwise;
  if (value->is_number_integer()) {
    const auto number = value->get<std::int64_t>();
    if (number >= lowest && number <= most) return number;
  }
  fault(fmt::format("'{}' is {}, not a whole number from {} to {}", key, brief(*value), lowest,
                    most));
  return lowest;
}

bool HfKeys::flag(std::string_view key, bool otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  fault(fmt::format("'{}' is {}, not true or false", key, brief(*value)));
  return otherwise;
}

bool HfKeys::any_positive(const std::vector<std::string>& keys, bool otherwise) {
  bool there = false;
  bool any = false;
  for (const std::string& key : keys) {
    const Json* value = find(key);
    if (value == nullptr) continue;
    there = true;
    if (!value->is_number())
      fault(fmt::format("'{}' is {}, not a number", key, brief(*value)));
    else
      any = any || value->get<double>() > 0;
  }
  return there ? any : otherwise;
}

void HfKeys::fault(std::string message, Error::Code code) {
  if (error_.ok()) error_ = Error{code, std::move(message)};
}

namespace {

using Json = HfKeys::Json;

// A value as YAML has it: true, 4, greedy.
Json value_of(const std::string& word) {
  Json value = Json::parse(word, nullptr, false);
  return value.is_discarded() ? Json(word) : value;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The keys of flags hold true or false; other keys, any value.
bool holds(HfKeys& keys, const HfRule& rule, Json& value) {
  const std::vector<std::string> usual{"true"};
  const auto& words = rule.unless ? rule.unless->words : rule.is ? rule.is->words : usual;
  const Json* stated = keys.find(rule.key);
  if (stated == nullptr && !rule.otherwise) return false;
  value = stated == nullptr ? value_of(*rule.otherwise) : *stated;
  const auto is_named = [&](const std::string& word) { return value_of(word) == value; };
  if (std::ranges::all_of(words, [](const auto& each) { return value_of(each).is_boolean(); }) &&
      !value.is_boolean()) {
    keys.flag(rule.key, false);
    if (!rule.otherwise) return false;
    value = value_of(*rule.otherwise);
  }
  return std::ranges::any_of(words, is_named) != rule.unless.has_value();
}

void follow(HfKeys& keys, const HfRule& rule, Model& model) {
  Json value;
  if (!holds(keys, rule, value)) return;
  apply(rule.model, model);
  if (rule.refuse.empty()) return;
  std::string why = rule.refuse;
  constexpr std::string_view kValue = "{value}";
  if (const auto place = why.find(kValue); place != std::string::npos)
    why.replace(place, kValue.size(), text_of(value));
  keys.refuse(fmt::format("'{}' {}", rule.key, why));
}

// A bias that configurations of the type do not have is refused.
bool bias(HfKeys& keys, const HfType& type, const char* key, bool otherwise) {
  const bool stated = keys.flag(key, otherwise);
  const bool is_known = std::ranges::find(type.stated_biases, key) != type.stated_biases.end();
  if (stated && !otherwise && !is_known)
    keys.refuse(fmt::format(
        "'{}' is true, but models of type '{}' have no such bias; remove the key", key, type.name));
  return stated;
}

void read_experts(HfKeys& keys, const HfType& type, Model& model) {
  model.experts = keys.size(type.experts, model.experts);
  model.experts_per_token = keys.size(type.experts_per_token, model.experts_per_token);
  model.expert_groups = keys.size(type.expert_groups, model.expert_groups);
  model.groups_per_token = keys.size(type.groups_per_token, model.groups_per_token);
  model.expert_ffn = keys.size(type.expert_ffn, model.expert_ffn);
  model.dense_layers = keys.size(type.dense_layers, model.dense_layers, 0);
  model.expert_interval = keys.size(type.expert_interval, model.expert_interval);
  model.shared_ffn = keys.size(type.shared_ffn, model.shared_ffn);
  if (type.shared_experts) model.shared_ffn = keys.size(*type.shared_experts, 0) * model.expert_ffn;
}

// The columns of a head that do not rotate stand apart in the file; a query rank that is null is
// none.
void read_latents(HfKeys& keys, const HfType& type, Model& model) {
  if (!type.key_value_rank) return;
  model.key_value_rank = keys.size(type.key_value_rank);
  const std::string key = type.query_rank ? keys.stated_key(type.query_rank->keys()) : "";
  const bool is_null = keys.has(key) && keys.find(key) == nullptr;
  model.query_rank = is_null ? 0 : keys.size(type.query_rank);
  model.rotary_dim = keys.size(type.rotary_dim);
  model.head_dim = model.rotary_dim + keys.size(type.unrotated_dim);
  model.value_dim = keys.size(type.value_dim);
}

void read_ends(HfKeys& keys, const HfType& type, Model& model) {
  model.token_types = keys.size(type.token_types);
  if (const auto& image = type.image)
    model.image = Image{.size = keys.size(image->size),
                        .patch = keys.size(image->patch),
                        .channels = keys.size(image->channels)};
  if (const auto& encoder = type.encoder) {
    const std::int64_t decoder = keys.layers(encoder->decoder_layers);
    model.encoder = Encoder{.layers = model.layers,
                            .sequence = keys.size(encoder->sequence),
                            .mel_bins = keys.size(encoder->mel_bins)};
    model.layers += decoder > 0 ? decoder : model.layers;
  }
}

// Transformers writes the names of classes, or none where there are two.
std::int64_t count_of_labels(HfKeys& keys) {
  const Json* names = keys.find("id2label");
  if (names != nullptr && names->is_object() && !names->empty())
    return static_cast<std::int64_t>(names->size());
  return keys.size("num_labels", 2);
}

void read_class(HfKeys& keys, const HfType& type, Model& model) {
  if (type.classes.empty()) return;
  const Json* list = keys.find("architectures");
  const bool is_named =
      list != nullptr && list->is_array() && !list->empty() && list->front().is_string();
  const std::string name = is_named ? list->front().get<std::string>() : type.classes.front().name;
  const auto known = std::ranges::find(type.classes, name, &HfClass::name);
  if (known == type.classes.end()) return;  // refused later
  apply(known->model, model);
  if (known->labels) model.classes = count_of_labels(keys);
}

}  // namespace

void read_type(HfKeys& keys, const HfType& type, Model& model) {
  apply(type.model, model);
  model.layers = keys.layers(type.layers);
  model.hidden = keys.size(type.hidden);
  model.heads = keys.size(type.heads);
  model.kv_heads = keys.size(type.kv_heads);
  model.head_dim = keys.size(type.head_dim);
  model.ffn = keys.size(type.ffn);
  model.vocabulary = keys.size(type.vocabulary);
  model.tied_embeddings = keys.flag("tie_word_embeddings", model.tied_embeddings);
  model.attention_bias = bias(keys, type, "attention_bias", model.attention_bias);
  model.mlp_bias = bias(keys, type, "mlp_bias", model.mlp_bias);
  model.dropout = keys.any_positive(type.dropouts, model.dropout);
  model.clamped_activation = keys.any_positive(type.clamps, model.clamped_activation);
  read_experts(keys, type, model);
  read_latents(keys, type, model);
  read_ends(keys, type, model);
  for (const HfRule& rule : type.rules) follow(keys, rule, model);
  read_class(keys, type, model);
  finish(keys, type, model);
  if (keys.error().ok() && model.expert_ffn > 0 && !model.has_dense_layers()) model.ffn = 0;
}

}  // namespace foreshard::internal
