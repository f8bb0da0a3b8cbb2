#include "evidence/row_format.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <system_error>

#include "base/text.h"

#include "validate/tables/cells.h"

namespace foreshard::accuracy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolder = "tables";

std::string missing_name(const std::string& ours) {
  return "gives no name to the column '" + ours + "'";
}

std::string letters_and_digits(std::string_view text) {
  std::string low = lower_case(text);
  std::erase_if(low, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return low;
}

}  // namespace

const yaml::Names<StageCut>& yaml_names(const StageCut*) {
  static const yaml::Names<StageCut> names{
      {"equal", StageCut::kEqual, "As many layers on each stage as on the others."},
      {"by-weights", StageCut::kByWeights, "By numbers of weights, with the head's."},
  };
  return names;
}

const yaml::Table<FrameworkWords>& yaml_table(const FrameworkWords*) {
  using F = FrameworkWords;
  static const auto table =
      yaml::Table<F>("framework_words", "The framework that words of a row stand for.")
          .optional("framework", &F::framework, "Words of the framework's column, in any case.")
          .optional("source", &F::source, "Words of the source's column.")
          .optional("notes", &F::notes, "Words of the notes.")
          .required("take", &F::take, "The framework of the catalogue.")
          .optional("zero_stage", &F::zero_stage, "ZeRO stage of rows that state none.",
                    yaml::between(0, 3))
          .optional("vocabulary", &F::vocabulary,
                    "Vocabulary of rows that state none (default: the model family's).",
                    yaml::at_least(1))
          .optional("stages", &F::stages, "How layers are cut into pipeline stages.")
          .optional("one_sequence_with_experts", &F::one_sequence_with_experts,
                    "Micro-batches of models with experts have one sequence where a row states "
                    "none.")
          .optional("is_assumed", &F::is_assumed, "The framework is assumed, and told.")
          .optional("narrow_states", &F::narrow_states,
                    "Parameters, gradients and optimizer states have the training precision.")
          .optional("only_gpt", &F::only_gpt,
                    "Models of these rows are like GPT-2, whatever their names.");
  return table;
}

const yaml::Table<DeviceWords>& yaml_table(const DeviceWords*) {
  using D = DeviceWords;
  static const auto table =
      yaml::Table<D>("device_words", "The device that words of a row stand for.")
          .required("gpu", &D::gpu, "Words of the device's column.", yaml::non_empty())
          .optional("source", &D::source, "Words of the source's column.")
          .optional("notes", &D::notes, "Words of the notes.")
          .required("take", &D::take, "The device of the catalogue.");
  return table;
}

const yaml::Table<Family>& yaml_table(const Family*) {
  static const auto table =
      yaml::Table<Family>("family", "What the name of a model implies.")
          .required("word", &Family::word, "Part of the model's name, in any case.",
                    yaml::non_empty())
          .optional("norm", &Family::norm, "Normalization.")
          .optional("activation", &Family::activation, "Activation of the feed-forward part.")
          .optional("positions", &Family::positions, "How positions enter.")
          .optional("bias", &Family::bias, "All linear layers have biases.")
          .optional("qkv_bias", &Family::qkv_bias, "Queries, keys and values have biases.")
          .optional("tied_embeddings", &Family::tied_embeddings,
                    "The head shares the embedding's table.")
          .optional("dropout", &Family::dropout, "Trained with dropout.")
          .optional("attention_bias", &Family::attention_bias, "All of attention has biases.")
          .optional("mlp_bias", &Family::mlp_bias, "The feed-forward part has biases.")
          .optional("router_bias", &Family::router_bias, "The router has a bias.")
          .optional("sinks", &Family::sinks, "Attention has sinks.")
          .optional("clamped_activation", &Family::clamped_activation,
                    "The activation's inputs are clamped.")
          .required("vocabulary", &Family::vocabulary, "Vocabulary where a row states none.",
                    yaml::at_least(1))
          .required("source", &Family::source, "Where this is from.", yaml::non_empty());
  return table;
}

const yaml::Table<HybridWords>& yaml_table(const HybridWords*) {
  static const auto table =
      yaml::Table<HybridWords>("hybrid", "A model whose layers no columns can describe.")
          .required("name", &HybridWords::name,
                    "Beginning of the model's name: lower case, letters and digits alone.",
                    yaml::non_empty())
          .required("take", &HybridWords::take, "The model of the catalogue.");
  return table;
}

const yaml::Table<ScheduleWords>& yaml_table(const ScheduleWords*) {
  using S = ScheduleWords;
  static const auto table =
      yaml::Table<S>("schedule_words", "What a table calls a pipeline schedule.")
          .required("word", &S::word, "The word, in lower case.", yaml::non_empty())
          .required("schedule", &S::schedule, "The schedule's name in strategies.",
                    yaml::non_empty())
          .optional("is_split", &S::is_split, "Backward passes run in two parts.")
          .optional("is_synchronous", &S::is_synchronous,
                    "The optimizer steps of all stages are said to wait for each other.");
  return table;
}

const yaml::Table<RowFormat>& yaml_table(const RowFormat*) {
  using R = RowFormat;
  static const auto table =
      yaml::Table<R>("table", "How tables of measured training steps write things down.")
          .folder(std::string(kFolder))
          .required("columns", &R::columns, "What a column holds -> its name in the table.")
          .required("required", &R::required, "What a table must have columns for.")
          .required("frameworks", &R::frameworks,
                    "Frameworks by words of rows; the first line that fits counts, the last must "
                    "fit all.",
                    yaml::non_empty())
          .optional("devices", &R::devices,
                    "Devices by words of rows, where the device's name stands for another variant; "
                    "the first line that fits counts.")
          .required("families", &R::families, "Families of models by words of their names.",
                    yaml::non_empty())
          .required("gated_family", &R::gated_family,
                    "Family of models of unknown name with gates in their feed-forward part.")
          .required("plain_family", &R::plain_family, "Family of other models of unknown name.")
          .optional("hybrids", &R::hybrids, "Models whose layers no columns can describe.")
          .optional("schedules", &R::schedules, "Pipeline schedules by their words.")
          .check("columns",
                 [](const R& format) {
                   for (const char* ours : {"model", "metric"})
                     if (!format.columns.contains(ours)) return missing_name(ours);
                   for (const std::string& ours : format.required)
                     if (!format.columns.contains(ours)) return missing_name(ours);
                   return std::string();
                 })
          .check("frameworks",
                 [](const R& format) {
                   const FrameworkWords& last = format.frameworks.back();
                   return last.framework.empty() && last.source.empty() && last.notes.empty()
                              ? ""
                              : "must end with a line without words, which fits all rows";
                 })
          .check("families", [](const R& format) {
            for (const std::string& word : {format.gated_family, format.plain_family})
              if (std::ranges::find(format.families, word, &Family::word) == format.families.end())
                return "lists no family with the word '" + word + "'";
            return std::string();
          });
  return table;
}

const std::string& RowFormat::column(const std::string& ours) const {
  static const std::string none;
  const auto known = columns.find(ours);
  return known == columns.end() ? none : known->second;
}

const FrameworkWords& RowFormat::framework_named(std::string_view framework,
                                                 std::string_view source,
                                                 std::string_view notes) const {
  const std::string name = lower_case(framework);
  return *std::ranges::find_if(frameworks, [&](const FrameworkWords& line) {
    return contains(name, lower_case(line.framework)) && contains(source, line.source) &&
           contains(notes, line.notes);
  });
}

const DeviceWords* RowFormat::device_named(std::string_view gpu, std::string_view source,
                                           std::string_view notes) const {
  const auto known = std::ranges::find_if(devices, [&](const DeviceWords& line) {
    return contains(gpu, line.gpu) && contains(source, line.source) && contains(notes, line.notes);
  });
  return known == devices.end() ? nullptr : &*known;
}

const Family* RowFormat::family_named(std::string_view model_name) const {
  const std::string name = lower_case(model_name);
  const auto known = std::ranges::find_if(
      families, [&](const Family& family) { return contains(name, lower_case(family.word)); });
  return known == families.end() ? nullptr : &*known;
}

const Family& RowFormat::family_called(std::string_view word) const {
  return *std::ranges::find(families, word, &Family::word);
}

const HybridWords* RowFormat::hybrid_named(std::string_view model_name) const {
  const std::string name = letters_and_digits(model_name);
  const auto known = std::ranges::find_if(
      hybrids, [&](const HybridWords& line) { return name.starts_with(line.name); });
  return known == hybrids.end() ? nullptr : &*known;
}

const ScheduleWords* RowFormat::schedule_named(std::string_view word) const {
  const auto known = std::ranges::find(schedules, lower_case(word), &ScheduleWords::word);
  return known == schedules.end() ? nullptr : &*known;
}

Result<std::shared_ptr<const RowFormat>> format_of(const CsvTable& table,
                                                   const std::vector<fs::path>& catalogue) {
  std::set<std::string> names;
  for (const fs::path& folder : catalogue) {
    std::error_code status;
    for (auto entry = fs::directory_iterator(folder / kFolder, status);
         !status && entry != fs::directory_iterator(); entry.increment(status))
      if (entry->path().extension() == ".yaml") names.insert(entry->path().stem().string());
  }
  yaml::Loader loader({.catalogue = catalogue});
  for (const std::string& name : names) {
    FORESHARD_ASSIGN(auto format, loader.read_ref<RowFormat>(name));
    if (table.column(format.column("model")) && table.column(format.column("metric")))
      return std::make_shared<const RowFormat>(std::move(format));
  }
  return std::shared_ptr<const RowFormat>();
}

// A stage takes layers until the weights of all layers so far exceed the equal shares of the stages
// so far. Weights are counted as if there were as many heads of keys as of queries.
// Source: huggingface/nanotron 01de8d94548f, src/nanotron/models/base.py (build_model) and llama.py
// (get_block_compute_costs).
std::vector<std::int64_t> layers_by_weights(const Model& model, std::int64_t stages) {
  const std::int64_t layer = model.hidden * (4 * model.hidden + 3 * model.ffn_width());
  const std::int64_t all = model.layers * layer + model.hidden * model.vocabulary;
  std::vector<std::int64_t> split(static_cast<std::size_t>(stages));
  std::int64_t stage = 0;
  for (std::int64_t weights = layer; weights <= model.layers * layer; weights += layer) {
    ++split[static_cast<std::size_t>(stage)];
    if (weights * stages > all * (stage + 1)) ++stage;
  }
  return split;
}

Result<std::vector<TrainingRow>> read_training(const CsvTable& table, const RowFormat& format,
                                               std::string_view name) {
  std::vector<std::string> required;
  for (const std::string& ours : format.required) required.push_back(format.column(ours));
  FORESHARD_TRY(missing_columns(table, name, {required.begin(), required.end()}));
  std::vector<TrainingRow> rows;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    const auto text = [&](const char* ours) { return cells.text(format.column(ours)); };
    const auto integer = [&](const char* ours) { return cells.integer(format.column(ours)); };
    const auto number = [&](const char* ours) { return cells.number(format.column(ours)); };
    TrainingRow row{.line = line.line,
                    .id = cells.id(),
                    .source = text("source"),
                    .framework = text("framework"),
                    .gpu = text("gpu"),
                    .model_name = text("model"),
                    .gpu_mem_gb = number("gpu_memory"),
                    .internode_gbps_per_gpu = number("network"),
                    .parameters = number("parameters"),
                    .num_gpus = integer("gpus"),
                    .gpus_per_node = integer("gpus_per_node"),
                    .layers = integer("layers"),
                    .hidden = integer("hidden"),
                    .heads = integer("heads"),
                    .kv_heads = integer("kv_heads"),
                    .ffn = integer("ffn"),
                    .vocab = integer("vocabulary"),
                    .seq = integer("sequence"),
                    .experts = integer("experts"),
                    .topk = integer("experts_per_token"),
                    .tp = integer("tensor_parallel"),
                    .pp = integer("pipeline_parallel"),
                    .vpp = integer("virtual_stages"),
                    .dp = integer("data_parallel"),
                    .ep = integer("expert_parallel"),
                    .mbs = integer("micro_batch"),
                    .gbs = integer("global_batch"),
                    .cp = text("context_parallel"),
                    .zero_stage = text("zero_stage"),
                    .recompute = text("recompute"),
                    .seq_parallel = text("sequence_parallel"),
                    .precision = text("precision"),
                    .metric = text("metric"),
                    .unit = text("unit"),
                    .notes = text("notes"),
                    .value = cells.required(format.column("value"))};
    if (text("id").empty()) cells.fault("column '" + format.column("id") + "' is empty");
    if (row.metric.empty()) cells.fault("column '" + format.column("metric") + "' is empty");
    row.fault = cells.fault_text();
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foreshard::accuracy
