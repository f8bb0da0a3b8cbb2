// What follows from a change of a strategy (follow.h), for the proposals of ideas.cc.
#include "sim/advise/internal/follow.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/quantity.h"
#include "base/text.h"

#include "sim/search/space.h"

namespace foreshard::advise {
namespace {

using Json = nlohmann::ordered_json;

bool is_limited(const Strategy& strategy, const Model& model, std::string_view key) {
  return std::ranges::any_of(launch::limitations_in(strategy, model),
                             [&](const launch::Limitation& one) { return one.key == key; });
}

void follow_tensor(Strategy& strategy, const Strategy& from, const Start& start) {
  if (from.tensor_parallel > 1 && strategy.tensor_parallel == 1) strategy.sequence_parallel = false;
  if (start.study().graph || from.tensor_parallel > 1 || strategy.tensor_parallel == 1) return;
  strategy.sequence_parallel = start.model().sequence % strategy.tensor_parallel == 0;
  if (is_limited(strategy, start.model(), "sequence_parallel")) strategy.sequence_parallel = false;
}

void follow_pipeline(Strategy& strategy, const Strategy& from, const Start& start) {
  if (from.pipeline_parallel > 1 && strategy.pipeline_parallel == 1) {
    strategy.virtual_stages = 1;
    strategy.schedule = "1f1b";
    strategy.pass_times.clear();
    strategy.overlap_experts = false;
  }
  if (strategy.stages() == from.stages()) return;
  const std::int64_t stages = strategy.stages();
  strategy.layers_per_stage.clear();
  if (start.units() % stages != 0 && start.units() >= stages)
    strategy.layers_per_stage = even_split(start.units(), stages);
  const auto scaled = [&](std::int64_t layers) {
    return (layers * from.stages() + stages - 1) / stages;
  };
  strategy.recompute_layers = scaled(from.recompute_layers);
  strategy.offload_activation_layers = scaled(from.offload_activation_layers);
}

void follow_context(Strategy& strategy, const Strategy& from, const Start& start) {
  if (from.context_parallel > 1 && strategy.context_parallel == 1) {
    strategy.context_exchange = ContextExchange::kAllGather;
    strategy.context_heads = 1;
  }
  if (from.context_parallel > 1 || strategy.context_parallel == 1) return;
  for (const ContextExchange exchange :
       {from.context_exchange, ContextExchange::kRing, ContextExchange::kOverlappedAllGather,
        ContextExchange::kAllToAll}) {
    strategy.context_exchange = exchange;
    if (!is_limited(strategy, start.model(), "context_exchange")) return;
  }
}

void follow_shards(Strategy& strategy, const Strategy& from, const Start& start) {
  if (strategy.copies() == 1) {
    if (from.copies() == 1) return;
    strategy.zero_stage = 0;
    strategy.shard_replicas = 1;
    return;
  }
  if (strategy.zero_stage == 0 || strategy.data_parallel % strategy.shard_replicas != 0 ||
      strategy.shards() == 1)
    strategy.shard_replicas = 1;
  const bool is_new_pipeline = strategy.pipeline_parallel > 1 && from.pipeline_parallel == 1;
  if (is_new_pipeline && strategy.zero_stage > 1) strategy.zero_stage = 1;
  if (from.copies() > 1 || from.zero_stage > 0 || strategy.mode == Mode::kForward) return;
  for (const std::int64_t stage : {1, 0, 2, 3}) {
    strategy.zero_stage = stage;
    if (!is_limited(strategy, start.model(), "zero_stage")) return;
  }
}

void follow_batch(Strategy& strategy) {
  if (!strategy.batch_shares.empty() || strategy.global_batch % strategy.data_parallel != 0) return;
  const std::int64_t share = strategy.global_batch / strategy.data_parallel;
  strategy.micro_batch = std::min(strategy.micro_batch, share);
  while (share % strategy.micro_batch != 0) --strategy.micro_batch;
}

// Keys of a strategy beside those that a search changes (record_of, sim/search/space.h).
struct OtherKey {
  std::string_view key;
  Json (*value)(const Strategy& of);
};
constexpr auto kOtherKeys = std::to_array<OtherKey>({
    {"pass_times", [](const Strategy& of) { return Json(of.pass_times); }},
    {"schedule_actions", [](const Strategy& of) { return Json(of.schedule_actions); }},
    {"framework.gradient_reduction",
     [](const Strategy& of) { return Json(yaml::name_of(of.framework->gradient_reduction)); }},
    {"framework.overlap_parameter_gather",
     [](const Strategy& of) { return Json(of.framework->overlap_parameter_gather); }},
    {"framework.gradient_bucket",
     [](const Strategy& of) { return Json(format_exact(of.framework->gradient_bucket)); }},
});

struct Difference {
  std::string key;
  Json from;
  Json to;
};

std::vector<Difference> differences(const Strategy& from, const Strategy& to, bool all) {
  std::vector<Difference> found;
  const Json before = search::knobs_of(from);
  const Json after = search::knobs_of(to);
  for (const auto& [key, value] : after.items())
    if (const Json old = before.value(key, Json()); all || old != value)
      found.push_back({key, old, value});
  for (const OtherKey& other : kOtherKeys)
    if (Json old = other.value(from), now = other.value(to); old != now)
      found.push_back({std::string(other.key), std::move(old), std::move(now)});
  return found;
}

std::string as_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string in_words(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (!value.is_array()) return as_text(value);
  if (value.empty()) return "the default";
  std::vector<std::string> parts;
  for (const Json& part : value) parts.push_back(as_text(part));
  return join(parts, value.front().is_string() ? ", " : " ");
}

std::string label_of(const std::string& key) {
  if (key == "zero_stage") return "ZeRO stage";
  std::string label = key.substr(key.rfind('.') + 1);
  std::ranges::replace(label, '_', ' ');
  return label;
}

}  // namespace

void follow(Strategy& strategy, const Strategy& from, const Start& start) {
  follow_tensor(strategy, from, start);
  follow_pipeline(strategy, from, start);
  follow_context(strategy, from, start);
  follow_shards(strategy, from, start);
  follow_batch(strategy);
}

std::vector<yaml::Override> settings_between(const Strategy& from, const Strategy& to, bool all) {
  std::vector<yaml::Override> settings;
  for (const Difference& one : differences(from, to, all))
    settings.push_back({"strategy." + one.key, as_text(one.to)});
  return settings;
}

std::string words_between(const Strategy& from, const Strategy& to) {
  std::vector<std::string> words;
  bool is_told = false;  // Of what is recomputed.
  for (const Difference& one : differences(from, to, false)) {
    if (!one.key.starts_with("recompute")) {
      words.push_back(fmt::format("{}: {} instead of {}", label_of(one.key), in_words(one.to),
                                  in_words(one.from)));
    } else if (!std::exchange(is_told, true)) {
      words.push_back(fmt::format("recompute: {} instead of {}", words_of_recomputation(to),
                                  words_of_recomputation(from)));
    }
  }
  return join(words);
}

}  // namespace foreshard::advise
