// Reads another framework's file as a strategy (launch.h, import_launch), for the commands that
// take launch files (cli/load.cc), and has what several formats share: ranks, batches. Counts that
// overflow are refused, not wrapped.
#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "base/check.h"
#include "base/text.h"
#include "base/yaml/describe.h"
#include "base/yaml/leaves.h"

#include "strategies/launch/internal/formats.h"

namespace foreshard::launch {
namespace internal {
namespace {

// Texts that are often mistaken for a launch file, with what to do with them instead.
struct MistakenFormat {
  std::string_view sign;  ///< Part of the text; if it ends with ':', a key that is not indented.
  std::string_view also;  ///< Another such sign that must be there too, if not empty.
  std::string_view what;
  std::string_view instead;
};
constexpr std::string_view kGiveDeepSpeed =
    "import the DeepSpeed or accelerate configuration that it goes with, with its batch (--set "
    "strategy.micro_batch=N --set strategy.global_batch=N), or give --strategy '{data_parallel: N, "
    "zero_stage: 3, micro_batch: N, global_batch: N, framework: pytorch-fsdp}'";
constexpr std::string_view kGiveStrategy =
    "give --strategy '{data_parallel: N, zero_stage: 3, micro_batch: N, global_batch: N, "
    "framework: pytorch-fsdp}' and --model with the folder of its config.json";
constexpr MistakenFormat kForeign[]{
    {"\"model_type\"", "", "the config.json of a model", "give it as --model"},
    {"\"foreshard.", "", "a result of foreshard", "give the file of another framework"},
    {"global_batch:", "", "a strategy of foreshard", "give it as --strategy"},
    {"strategy:", "", "a study of foreshard", "simulate it as it is"},
    {"model_name_or_path:", "finetuning_type:", "a configuration of LLaMA-Factory", kGiveDeepSpeed},
    {"model_name_or_path:", "cutoff_len:", "a configuration of LLaMA-Factory", kGiveDeepSpeed},
    {"base_model:", "", "a configuration of Axolotl", kGiveDeepSpeed},
    {"model_name_or_path:", "", "a configuration of a Trainer of Transformers (TRL)",
     kGiveDeepSpeed},
    {"step_scheduler:", "", "a configuration of NeMo Automodel", kGiveStrategy},
    {"nemo_automodel", "", "a configuration of NeMo Automodel", kGiveStrategy},
    {"_component_: torchtune", "", "a configuration of torchtune", kGiveStrategy},
    {"actor_rollout_ref:", "", "a configuration of verl, whose steps are of several models",
     "predict each of them by itself: --model and --strategy"},
    {"parallelism:", "tokens:", "a configuration of nanotron",
     "give --strategy '{tensor_parallel: N, pipeline_parallel: N, data_parallel: N, micro_batch: "
     "N, "
     "global_batch: N, framework: nanotron}' and --model"},
    {"fsdp_config:", "max_seq_len:", "a configuration of LLM Foundry",
     "give --strategy '{data_parallel: N, zero_stage: 3, micro_batch: N, global_batch: N, "
     "framework: llm-foundry}' and --model"},
    {"#SBATCH", "", "a script of SLURM without options of a known framework",
     "give the options themselves"},
};

bool has_sign(std::string_view text, std::string_view sign) {
  return sign.ends_with(':') ? has_top_key(text, sign.substr(0, sign.size() - 1))
                             : contains(text, sign);
}

// AMD's Primus sets the arguments of Megatron-LM in YAML, on top of presets in files of its own.
std::string options_of_primus(const Request& request) {
  const auto settings = cut_yaml(request.text, request.name);
  std::string options = "--bf16";
  if (!settings) return options;
  for (const Setting& setting : *settings) {
    constexpr std::string_view kOverrides = ".overrides.";
    const std::size_t at = setting.key.find(kOverrides);
    if (at == std::string::npos || setting.words.size() != 1) continue;
    std::string option = "--" + setting.key.substr(at + kOverrides.size());
    std::ranges::replace(option, '_', '-');
    const std::string& word = setting.words.front();
    const auto rows = megatron_format().rows();
    const bool known =
        std::ranges::any_of(rows, [&](const Row& row) { return row.theirs == option; });
    if (!known || option == "--bf16" || word == "false") continue;
    options += " " + option + (word == "true" ? "" : " " + word);
  }
  return options;
}

Result<const Format*> format_of(const Request& request) {
  std::vector<std::string> names;
  for (const Format* format : all_formats()) {
    const bool meant =
        request.format.empty() ? format->recognises(request.text) : format->name == request.format;
    if (meant) return format;
    names.emplace_back(format->name);
  }
  const auto refuse = [&](const std::string& why, std::string_view help) {
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}: error: {}\n   help: {}", request.name, why, help)};
  };
  if (!request.format.empty())
    return refuse(fmt::format("there is no format '{}'", request.format),
                  "choose " + quoted_choice(names));
  if (has_top_key(request.text, "modules") && contains(request.text, "pre_trainer:"))
    return refuse(
        "this is a configuration of Primus, whose presets (config, model) are other files",
        fmt::format("give --model, and what it overrides as options, with those of the presets: "
                    "--megatron \"{}\"",
                    options_of_primus(request)));
  for (const MistakenFormat& each : kForeign)
    if (has_sign(request.text, each.sign) &&
        (each.also.empty() || has_sign(request.text, each.also)))
      return refuse(fmt::format("this is {}", each.what), each.instead);
  return refuse("no known framework writes such a file", "name it: " + quoted_choice(names));
}

// All keys, in the order of our tables.
std::vector<std::string> keys_of(std::string_view prefix, const std::string& echo) {
  const auto leaves = yaml::leaves(echo, "defaults");
  FORESHARD_CHECK(leaves.has_value());
  std::vector<std::string> keys;
  for (const yaml::Leaf& leaf : *leaves) keys.push_back(std::string(prefix) + leaf.path);
  return keys;
}

// A strategy in which all optional values are set.
Strategy whole_strategy() {
  Strategy whole;
  whole.framework.value.shards.gather_each = 0;
  whole.framework.value.fp16_gradient_dtype = DType::kFp16;
  return whole;
}

Model whole_model() {
  Model whole;
  whole.mamba.emplace();
  return whole;
}

std::vector<Line> lines_of(std::string_view prefix, const std::string& echo, const Draft& draft) {
  std::vector<std::string> keys = keys_of(prefix, echo);
  const auto framework =
      std::ranges::find_if(keys, [](auto& key) { return contains(key, ".framework."); });
  if (framework != keys.end()) keys.insert(framework, "strategy.framework.extends");
  keys.insert(keys.begin(), std::string(prefix) + "extends");
  std::vector<Line> lines;
  for (const std::string& key : keys) {
    if (!draft.has(key)) continue;
    const Value& value = draft.at(key);
    lines.push_back({key.substr(prefix.size()),
                     value.list ? "[" + join(value.words) + "]" : draft.word(key), value.from});
  }
  return lines;
}

void settle(Draft& draft, const Request& request) {
  for (const auto& [key, value] : request.settled)
    draft.set(key, Value{.words = {value},
                         .from = fmt::format("--set {}={}", key, value),
                         .place = request.name});
}

std::vector<std::string> missing_of(const Draft& draft) {
  std::vector<std::string> missing;
  if (draft.has("model.extends")) return missing;
  for (const char* key : {"layers", "hidden", "heads", "vocabulary", "sequence"})
    if (!draft.has(std::string("model.") + key)) missing.emplace_back(key);
  return missing;
}

}  // namespace

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t all = 1;
  for (const std::int64_t factor : factors)
    if (__builtin_mul_overflow(all, factor, &all))
      return std::numeric_limits<std::int64_t>::max() / 2;
  return all;
}

Result<std::int64_t> data_parallel(const Draft& draft, const ReadContext& reading,
                                   std::int64_t model_ranks, std::string_view sizes) {
  const Request& request = reading.request;
  constexpr std::int64_t kMostRanks = 1 << 30;
  if (request.settled.contains("strategy.data_parallel")) {
    const std::int64_t data = draft.count("strategy.data_parallel");
    if (data < 1 || data > kMostRanks)
      return fault(request.name, draft.from("strategy.data_parallel"), "out of range");
    return data;
  }
  const std::string key = "note.devices";
  if (!draft.has(key) && !request.devices)
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}: error: it does not say how many ranks there are, which their "
                             "launcher decides\n   help: give --devices, --cluster or "
                             "--set strategy.data_parallel=N",
                             request.name)};
  const std::int64_t devices = draft.has(key) ? draft.count(key) : *request.devices;
  if (devices < 1 || devices > kMostRanks)
    return fault(request.name, draft.has(key) ? draft.from(key) : "--devices",
                 fmt::format("{} ranks are out of range", devices));
  if (devices % model_ranks != 0)
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}: error: {} ranks do not divide by {} = {}\n   help: use {} or {} "
                             "ranks, or other sizes",
                             request.name, devices, sizes, model_ranks,
                             std::max<std::int64_t>(1, devices / model_ranks) * model_ranks,
                             (devices / model_ranks + 1) * model_ranks)};
  return devices / model_ranks;
}

void leave_micro_batch_open(Draft& draft) {
  draft.set("strategy.micro_batch", 1, "nobody says it");
  draft.set(std::string(kOpenMicroBatch), 1, "");
}

Status fault_in_batch(const Draft& draft, const ReadContext& reading) {
  const std::int64_t global = draft.count("strategy.global_batch", 0);
  const std::int64_t data = draft.count("strategy.data_parallel");
  const std::int64_t micro = draft.count("strategy.micro_batch");
  if (data < 1 || micro < 1 || data > (1 << 20) || micro > (1 << 30))
    return fault(reading.request.name, draft.from("strategy.micro_batch"),
                 "sizes must be positive");
  const std::int64_t unit = data * micro;
  if (global > 0 && global % unit == 0) return {};
  return fault(reading.request.name, draft.from("strategy.global_batch"),
               fmt::format("a batch of {} does not divide into data-parallel {} x micro-batch {} = "
                           "{}",
                           global, data, micro, unit),
               fmt::format("use {}", std::max<std::int64_t>(1, global / unit) * unit));
}

}  // namespace internal

Result<Imported> import_launch(const Request& request) {
  FORESHARD_ASSIGN(const internal::Format* format, internal::format_of(request));
  FORESHARD_ASSIGN(const auto settings, format->cut(request.text, request.name));
  Imported imported;
  imported.format = format->name;
  imported.name = request.name;
  FORESHARD_ASSIGN(auto draft, internal::take(*format, settings, imported));
  internal::settle(draft, request);
  FORESHARD_TRY(format->finish(draft, {request, imported.unmodelled}));
  internal::settle(draft, request);
  imported.strategy =
      internal::lines_of("strategy.", yaml::echo(internal::whole_strategy()), draft);
  imported.model = internal::lines_of("model.", yaml::echo(internal::whole_model()), draft);
  if (!imported.model.empty()) imported.missing = internal::missing_of(draft);
  const bool is_open = draft.has(internal::kOpenMicroBatch);
  if (is_open && !request.settled.contains("strategy.micro_batch")) imported.open = {"micro_batch"};
  return imported;
}

}  // namespace foreshard::launch
