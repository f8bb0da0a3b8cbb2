// What a config.json gives by its model type: files that state one of the type's keys, all of its
// sizes, or two of the keys that its rules are for.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/yaml/describe.h"
#include "tests/configs/from_catalogue.h"
#include "tests/configs/probes.h"

#include "strategies/graph/hf_config.h"

namespace foreshard {
namespace {

using Json = nlohmann::json;

std::string read_by(const HfType& type, const Json& config, std::int64_t sequence) {
  const auto wanted = sequence > 0 ? std::optional(sequence) : std::nullopt;
  const auto read = read_hf_config(config.dump(), "m", wanted, true, type);
  if (!read) return read.error().message;
  std::string text = yaml::echo(read->model);
  for (const std::string& remark : read->remarks) text += remark + "\n";
  return text;
}

// A value as YAML writes it.
Json value_of(const std::string& word) {
  Json value = Json::parse(word, nullptr, false);
  return value.is_discarded() ? Json(word) : value;
}

// The config with the value at "key" or "object.key".
Json with(Json config, const std::string& key, const Json& value) {
  const auto dot = key.find('.');
  if (dot == std::string::npos)
    config[key] = value;
  else
    config[key.substr(0, dot)][key.substr(dot + 1)] = value;
  return config;
}

std::vector<HfSize> sizes_of(HfType type) {
  if (type.heads && type.kv_heads && type.kv_heads->otherwise == 0)
    type.kv_heads->otherwise = type.heads->otherwise;
  std::vector<HfSize> sizes{type.layers, type.hidden};
  for (const auto* each : {&type.heads,
                           &type.kv_heads,
                           &type.head_dim,
                           &type.ffn,
                           &type.vocabulary,
                           &type.longest,
                           &type.full_interval,
                           &type.unrotated,
                           &type.alternating_window,
                           &type.experts,
                           &type.experts_per_token,
                           &type.expert_groups,
                           &type.groups_per_token,
                           &type.expert_ffn,
                           &type.shared_ffn,
                           &type.dense_layers,
                           &type.expert_interval,
                           &type.shared_experts,
                           &type.key_value_rank,
                           &type.query_rank,
                           &type.rotary_dim,
                           &type.unrotated_dim,
                           &type.value_dim,
                           &type.token_types})
    if (*each) sizes.push_back(**each);
  const auto add = [&](auto... more) { (sizes.push_back(more), ...); };
  if (const auto& m = type.mamba)
    add(m->heads, m->head_dim, m->groups, m->state, m->conv, m->chunk);
  if (const auto& e = type.encoder) add(e->decoder_layers, e->sequence, e->mel_bins);
  if (const auto& i = type.image) add(i->size, i->patch, i->channels);
  return sizes;
}

// A key with a value that a rule is for, or with one that it is not for.
std::vector<std::pair<std::string, Json>> values_of_rules(const HfType& type) {
  std::vector<std::pair<std::string, Json>> values;
  for (const HfRule& rule : type.rules) {
    for (const auto& words : {rule.is, rule.unless})
      for (const std::string& word : words ? words->words : std::vector<std::string>())
        values.emplace_back(rule.key, value_of(word));
    const bool is_flag =
        !rule.unless && (!rule.is || value_of(rule.is->words.front()).is_boolean());
    if (is_flag)
      for (const bool flag : {false, true}) values.emplace_back(rule.key, flag);
    else
      values.emplace_back(rule.key, "another");
  }
  return values;
}

std::vector<Json> configs_of(const HfType& type) {
  Json usual{{"model_type", type.name}};
  if (type.finish == HfFinish::kNemotronH) usual["hybrid_override_pattern"] = "M-M*-ME";
  std::vector<Json> configs{usual};
  const auto add = [&](const std::string& key, const Json& value) {
    configs.push_back(with(usual, key, value));
  };
  Json doubled = usual;
  for (const HfSize& size : sizes_of(type)) {
    const std::int64_t twice = size.otherwise > 0 ? 2 * size.otherwise : 2;
    for (const std::string& key : size.keys()) add(key, twice);
    if (size.key) doubled = with(doubled, size.keys().front(), twice);
  }
  configs.push_back(doubled);
  configs.push_back(with(doubled, "use_sliding_window", true));
  if (type.activation && type.activation->key) {
    for (const std::string& key : type.activation->key->words) add(key, "another");
    for (const std::string& word : type.activation->words)
      add(type.activation->key->words.front(), word);
  }
  for (const auto* keys : {&type.dropouts, &type.clamps})
    for (const std::string& key : *keys)
      for (const double value : {0.0, 0.5}) add(key, value);
  for (const char* bias : {"attention_bias", "mlp_bias"}) add(bias, true);
  add("use_sliding_window", true);
  add("sliding_window", 512);
  add("mlp_only_layers", {0, 1});
  for (const HfClass& each : type.classes) {
    add("architectures", {each.name});
    configs.back()["num_labels"] = 7;
  }
  const auto values = values_of_rules(type);
  for (const auto& [key, value] : values) {
    configs.push_back(with(doubled, key, value));
    for (const auto& [other, second] : values)
      configs.push_back(with(with(usual, key, value), other, second));
  }
  return configs;
}

}  // namespace

Probes<HfType> probes_of(const HfType*, const std::string& name) {
  Probes<HfType> probes;
  for (const Json& config : configs_of(from_catalogue<HfType>(name)))
    for (const std::int64_t sequence : {0, 200, 1024, 16384})
      probes.push_back(
          [config, sequence](const HfType& type) { return read_by(type, config, sequence); });
  return probes;
}

}  // namespace foreshard
