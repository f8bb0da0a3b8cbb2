// Reads a study and all that it refers to, and makes the checks that need several of its files
// (study.h). Every command that takes a study calls load_study.
#include "sim/study/study.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/yaml/quoted.h"

#include "sim/compute/measured.h"
#include "sim/study/attention.h"
#include "sim/study/expense.h"
#include "strategies/graph/hf_config.h"
#include "strategies/graph/rebatch.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/program/lower/graph.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::study {
namespace {

namespace fs = std::filesystem;

bool is_onnx(std::string_view path) {
  return path.ends_with(".onnx");
}

struct GivenPart {
  std::string key;
  std::string value;  ///< YAML.
};

// A part given on the command line as YAML: a mapping in braces stays, anything else is quoted as a
// reference to a file.
std::string part_text(const std::string& given) {
  return given.starts_with('{') ? given : yaml::quoted(given);
}

// The parts that are given on the command line, in addition to the study or instead of it.
std::vector<GivenPart> parts_of(const StudyFiles& files) {
  std::vector<GivenPart> parts;
  if (files.cluster) parts.push_back({"cluster", part_text(*files.cluster)});
  if (files.model && is_hf_config(*files.model)) {
    parts.push_back({"huggingface.config", yaml::quoted(*files.model)});
  } else if (files.model && is_onnx(*files.model)) {
    parts.push_back({"graph.file", yaml::quoted(*files.model)});
  } else if (files.model) {
    parts.push_back({"model", part_text(*files.model)});
  }
  if (files.strategy) parts.push_back({"strategy", part_text(*files.strategy)});
  if (files.communication) parts.push_back({"communication", part_text(*files.communication)});
  return parts;
}

// Whether this is a name of the catalogue, not the path of a file.
bool is_catalogue_name(const fs::path& study) {
  std::error_code status;
  return study != "-" && study.extension() != ".yaml" && !study.has_parent_path() &&
         !fs::exists(study, status);
}

// The path in the `model:` of a study's file if it names a config.json or its folder.
std::optional<std::string> hf_model_in(const fs::path& study) {
  if (study == "-") return std::nullopt;  // stdin can be read only once
  const auto bytes = foreshard::read_file(study, limits::kConfig);
  if (!bytes) return std::nullopt;
  constexpr std::string_view kKey = "model:";
  for (std::size_t begin = 0; begin < bytes->size();) {
    const std::size_t end = std::min(bytes->find('\n', begin), bytes->size());
    std::string_view value = std::string_view(*bytes).substr(begin, end - begin);
    begin = end + 1;
    if (!value.starts_with(kKey)) continue;
    value = value.substr(kKey.size(), value.find(" #") - kKey.size());
    const auto is_around = [](char c) {
      return std::string_view(" \t\r\"'").find(c) != std::string_view::npos;
    };
    while (!value.empty() && is_around(value.front())) value.remove_prefix(1);
    while (!value.empty() && is_around(value.back())) value.remove_suffix(1);
    const std::string path = (study.parent_path() / value).string();
    return !value.empty() && value != "-" && is_hf_config(path) ? std::optional(path)
                                                                : std::nullopt;
  }
  return std::nullopt;
}

// A config.json does not state the length of a training sample: `model.sequence` is therefore an
// override of `huggingface.sequence`. Other keys of such a model are changed in its file.
Status take_hf_keys(const StudyFiles& files, std::vector<yaml::Override>& overrides) {
  if (!files.model || !is_hf_config(*files.model)) return {};
  for (yaml::Override& each : overrides) {
    constexpr std::string_view kModel = "model.";
    if (!each.path.starts_with(kModel)) continue;
    const std::string key = each.path.substr(kModel.size());
    if (key != "sequence" && key != "name")
      return Error{Error::Code::kInvalidInput,
                   fmt::format("--set {0}: the model is the config.json of {1}, which has no such "
                               "key of foreshard\n   help: make a model of one's own of it "
                               "(foreshard check {1} -o model.yaml) and give --model model.yaml",
                               each.path, *files.model)};
    each.path = "huggingface." + key;
  }
  return {};
}

// If the study's `model:` names a config.json, acts as if `--model` named it. The key itself must
// still hold a model; the one put there is never looked at.
void take_hf_model(StudyFiles& files, std::vector<yaml::Override>& overrides) {
  if (!files.study || is_catalogue_name(*files.study)) return;
  auto path = hf_model_in(*files.study);
  if (!path) return;
  if (!files.model) files.model = *std::move(path);
  overrides.push_back(
      {"model", "{name: none, layers: 1, hidden: 1, heads: 1, vocabulary: 1, sequence: 1}"});
}

Result<Study> read_study(const StudyFiles& files, yaml::Loader& loader) {
  if (files.text) return loader.read_text<Study>(files.text->bytes, files.text->path);
  if (files.study && is_catalogue_name(*files.study))
    return loader.read_ref<Study>(files.study->string());
  if (files.study) return loader.read_file<Study>(*files.study);
  std::string text = files.cluster || files.model || files.strategy ? "" : "{}";
  for (const GivenPart& part : parts_of(files)) {
    const std::size_t dot = part.key.find('.');
    text += dot == std::string::npos ? part.key + ": " + part.value + "\n"
                                     : fmt::format("{}: {{{}: {}}}\n", part.key.substr(0, dot),
                                                   part.key.substr(dot + 1), part.value);
  }
  return loader.read_text<Study>(text, "command line");
}

// The file that holds the value at `path`; empty for a value of the command line.
fs::path file_of(const yaml::Loader& loader, std::string_view path) {
  std::string place = loader.place(path);
  for (int i = 0; i < 2; ++i) {
    const auto colon = place.rfind(':');
    if (colon == std::string::npos) return {};
    place.resize(colon);
  }
  std::error_code status;
  return fs::is_regular_file(place, status) ? fs::path(place) : fs::path();
}

// The folder of that file; the working directory for a value of the command line.
fs::path folder_of(const yaml::Loader& loader, std::string_view path) {
  return file_of(loader, path).parent_path();
}

// "organisation/model": two words of letters, digits and . _ -
bool is_hf_id(std::string_view text) {
  const auto slash = text.find('/');
  const auto is_word = [](std::string_view word) {
    return !word.empty() && word.front() != '.' && std::ranges::all_of(word, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
    });
  };
  return slash != std::string_view::npos && is_word(text.substr(0, slash)) &&
         is_word(text.substr(slash + 1));
}

// An error if --model names a repository of the Hugging Face hub instead of a local file.
Status refuse_download(const StudyFiles& files, const std::vector<fs::path>& catalogue) {
  if (!files.model || !is_hf_id(*files.model) || is_onnx(*files.model)) return {};
  std::error_code status;
  const auto is_here = [&](const fs::path& folder) {
    return fs::exists(folder / "models" / (*files.model + ".yaml"), status);
  };
  const fs::path path(*files.model);
  if (path.extension() == ".yaml" || path.extension() == ".json" || fs::exists(path, status) ||
      std::ranges::any_of(catalogue, is_here))
    return {};
  return Error{
      Error::Code::kInvalidInput,
      fmt::format("--model {0}: there is no such file, and foreshard downloads nothing\n"
                  "   help: save https://huggingface.co/{0}/raw/main/config.json and give its "
                  "path: --model config.json",
                  *files.model)};
}

// Advice for a config.json that cannot be imported.
std::string help_for(const HuggingFaceModel& source, const fs::path& folder) {
  std::error_code status;
  const bool is_here = source.config == "-" || fs::exists(folder / source.config, status);
  return is_hf_id(source.config) && !is_here
             ? "foreshard downloads nothing: save the model's config.json and give its path"
             : "";
}

// Imports `source`, relative to the folder of the file that names it. The name that a study gives
// its own model is not used for another model.
Result<Model> import(HuggingFaceModel source, const StudyFiles& given, yaml::Loader& loader,
                     std::vector<yaml::Input>& inputs, std::vector<std::string>& remarks) {
  if (given.study && given.model &&
      loader.place("huggingface.name").find("--set") == std::string::npos)
    source.name.reset();
  const fs::path folder = folder_of(loader, "huggingface.config");
  auto imported = import_model(source, folder, loader);
  if (!imported)
    return loader.error_at("huggingface.config", imported.error().message,
                           help_for(source, folder));
  ImportedModel known = *std::move(imported);
  inputs.push_back(std::move(known.input));
  remarks = std::move(known.remarks);
  return std::move(known.model);
}

// Whether the study's graph is used: --model may replace it with another model.
bool has_graph(const Study& study, const StudyFiles& files) {
  return study.graph && (!files.model || is_onnx(*files.model));
}

// `given` is what the caller gave; `files` also has what the study's own keys name.
Result<Model> model_of(const Study& study, const StudyFiles& given, const StudyFiles& files,
                       yaml::Loader& loader, std::vector<yaml::Input>& inputs,
                       std::vector<std::string>& remarks) {
  const bool flag_decides = files.model.has_value();
  if (study.graph && !flag_decides && (study.model || study.huggingface))
    return loader.error_at("graph", "a study has a graph or a model, not both",
                           "leave out one of them");
  if (has_graph(study, files)) return Model{};
  if (study.model && study.huggingface && !flag_decides)
    return loader.error_at("huggingface", "'model' and 'huggingface' are given together",
                           "leave out one of them");
  const bool imported = study.huggingface && (!flag_decides || is_hf_config(*files.model));
  if (!imported && !study.model)
    return loader.error_at(
        "", "the study has no model",
        "give 'model', or 'huggingface' with the path of a config.json, or 'graph' "
        "with that of an .onnx file, or --model");
  auto model = imported ? import(*study.huggingface, given, loader, inputs, remarks)
                        : Result<Model>(**study.model);
  if (!model) return model;
  auto sound = checked(*std::move(model));
  if (!sound) return loader.error_at(imported ? "huggingface" : "model", sound.error().message);
  return sound;
}

Result<comm::Parameters> communication_of(const Study& study, yaml::Loader& loader) {
  if (study.communication) return **study.communication;
  return loader.read_ref<comm::Parameters>(kDefaultCommunication, "communication");
}

Status unknown_schedule(const Strategy& strategy, const yaml::Loader& loader, std::string_view at) {
  const std::string& name = strategy.schedule;
  if (schedule::find_schedule(name) != nullptr) return {};
  if (name == "dualpipe") {
    const std::int64_t half = strategy.pipeline_parallel / 2;
    return loader.error_at(
        fmt::format("{}.schedule", at),
        "DualPipe keeps each of p stages on two of p ranks, and runs as DualPipeV does on half of "
        "them with twice the replicas",
        strategy.pipeline_parallel != 2 * half || half < 2
            ? "set schedule: dualpipe-v; DualPipe itself has an even number of ranks, 4 or more"
            : fmt::format("set schedule: dualpipe-v, virtual_stages: 2, pipeline_parallel: {}, "
                          "data_parallel: {}",
                          half, strategy.data_parallel * 2));
  }
  std::vector<std::string> names;
  for (const auto& schedule : schedule::schedules()) names.emplace_back(schedule.name);
  const auto near = nearest_name(name, names);
  return loader.error_at(
      fmt::format("{}.schedule", at), fmt::format("no schedule '{}'", name),
      near ? fmt::format("did you mean '{}'?", *near) : "use " + quoted_choice(names));
}

// Reads the rows of the CSV that a strategy names, one per pipeline rank.
Status read_schedule_file(Strategy& strategy, const yaml::Loader& loader,
                          std::vector<yaml::Input>& inputs) {
  if (strategy.schedule_file.empty()) return {};
  constexpr std::string_view kPlace = "strategy.schedule_file";
  if (!strategy.schedule_actions.empty())
    return loader.error_at(kPlace, "'schedule_actions' and 'schedule_file' are given together",
                           "leave out one of them");
  const fs::path path = folder_of(loader, kPlace) / strategy.schedule_file;
  auto bytes = foreshard::read_file(path, limits::kConfig);
  if (!bytes) return loader.error_at(kPlace, bytes.error().message);
  std::istringstream text(*bytes);
  for (std::string row; std::getline(text, row);)
    if (!row.empty() && row != "\r") strategy.schedule_actions.push_back(row);
  inputs.push_back({path.string(), *std::move(bytes)});
  return {};
}

// A catalogue file is shown by its path inside the catalogue, wherever the catalogue is: results
// must not depend on its location.
std::string shown_path(const std::string& path, const std::vector<fs::path>& catalogue) {
  for (const fs::path& folder : catalogue) {
    const fs::path inside = fs::path(path).lexically_relative(folder);
    if (!inside.empty() && *inside.begin() != "..") return (fs::path("configs") / inside).string();
  }
  return path;
}

// The name of a study: a file loses its ending, a name in the catalogue keeps its dots
// ("gpt-1.7b").
std::string name_of_study(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  const bool is_file = ending == ".yaml" || ending == ".yml" || ending == ".json";
  return (is_file ? path.stem() : path.filename()).string();
}

}  // namespace

const yaml::Table<Study>& yaml_table(const Study*) {
  static const auto table =
      yaml::Table<Study>("study", "A model, a strategy and a cluster to predict a step of.")
          .folder("studies")
          .optional("description", &Study::description,
                    "A sentence on what the study asks, shown in reports.")
          .required("cluster", &Study::cluster, "The devices and the network that joins them.")
          .optional("model", &Study::model,
                    "The model that is trained; also a config.json of Hugging Face or its folder.")
          .optional("huggingface", &Study::huggingface,
                    "The model that is trained, as a config.json; instead of `model`.")
          .optional("graph", &Study::graph, "A general graph (ONNX); instead of `model`.")
          .required("strategy", &Study::strategy,
                    "How the model and its batch are divided over the devices.")
          .optional("communication", &Study::communication,
                    "What the communication library adds to the links (default: nccl).")
          .optional("disturbances", &Study::disturbances,
                    "Disturbances of the step: slow devices, failures, other traffic, ...")
          .optional("use", &Study::use,
                    "Devices that ranks run on, in this order: 'node3/gpu5', 'node3' for all of a "
                    "node, * for any text (default: all that work). What is left over is idle.",
                    yaml::non_empty())
          .optional("train", &Study::train,
                    "How long the whole training is, for its days, energy and rent: 2T tokens, "
                    "1.2M samples.")
          .optional("memory_margin", &Study::memory_margin,
                    "The part of each device's memory that should stay free, since predicted peaks "
                    "can be too low: what leaves less is marked tight, and no search prefers it "
                    "(default: by how far measured peaks were above predicted ones).",
                    yaml::between(0, 0.9))
          .optional("measured_steps", &Study::measured_steps,
                    "Your own measured steps, which narrow the intervals of steps like them: a "
                    "file that `foreshard accuracy STEPS.csv --write-steps` made.")
          .optional("open", &Study::open,
                    "Settings of the strategy that nobody says: the fastest choice that fits in "
                    "memory is taken, and the interval reaches to the slowest one that fits.")
          .optional("assumed", &Study::assumed,
                    "What else the study's source does not say and was assumed, shown with the "
                    "result.");
  return table;
}

namespace {

// The fault's message, with the reason if there are too few devices.
std::string shown(const StrategyFault& fault, const yaml::Loader& loader, std::string_view at,
                  std::string_view shortage) {
  const bool too_few = fault.key == "data_parallel" && !shortage.empty();
  return loader
      .error_at(fmt::format("{}.{}", at, fault.key),
                fault.message + (too_few ? fmt::format(" ({})", shortage) : ""), fault.help)
      .message;
}

// All faults of the strategy at `at`.
Status as_status(const Strategy& strategy, const std::vector<StrategyFault>& faults,
                 const yaml::Loader& loader, std::string_view at, std::string_view shortage) {
  std::vector<std::string> messages;
  if (const Status unknown = unknown_schedule(strategy, loader, at); !unknown.ok())
    messages.push_back(unknown.error().message);
  for (const StrategyFault& fault : faults) messages.push_back(shown(fault, loader, at, shortage));
  if (messages.empty()) return {};
  return Error{Error::Code::kInvalidInput, join(messages, "\n")};
}

}  // namespace

Status misfit(const Strategy& strategy, const Model& model, std::int64_t devices,
              const yaml::Loader& loader, std::string_view at, std::string_view shortage) {
  return as_status(strategy, faults_in(strategy, model, devices), loader, at, shortage);
}

namespace {

// Changes the graph's batch to the strategy's micro-batches if the graph allows it. If not, its
// batch is a fault of the strategy.
void take_micro_batch(const Strategy& strategy, LoadedGraph& graph) {
  const std::int64_t samples = strategy.micro_batch * strategy.data_parallel;
  auto changed = rebatched(graph.graph, graph.batch, samples);
  if (!changed) return;
  graph.graph = *std::move(changed);
  graph.batch = samples;
}

Status graph_misfit(const Strategy& strategy, const LoadedGraph& graph, const Pool& pool,
                    const yaml::Loader& loader) {
  return as_status(
      strategy,
      faults_in_graph(strategy, graph.graph, graph.axes, graph.units, graph.batch, pool.size()),
      loader, "strategy", pool.shortage);
}

Status fault_in_training(const std::string& text, const Strategy& strategy,
                         const std::optional<LoadedGraph>& graph, const yaml::Loader& loader) {
  const auto length = parse_training_length(text);
  if (!length) return loader.error_at("train", length.error().message);
  if (strategy.mode == Mode::kForward)
    return loader.error_at("train", "a step of mode: forward trains nothing", "leave it out");
  if (length->tokens && graph && graph->tokens_per_sample == 0)
    return loader.error_at(
        "train", "the graph's inputs do not show how many tokens a sample holds",
        fmt::format("count {}s, or give graph.tokens_per_sample", graph->sample));
  const std::string sample = graph ? graph->sample : "sequence";
  if (!length->tokens && length->unit != "samples" && length->unit != sample + "s")
    return loader.error_at(
        "train",
        fmt::format("a sample here is {} {}, so no {} are counted", sample == "image" ? "an" : "a",
                    sample, length->unit),
        sample == "sample" ? "count samples" : fmt::format("count samples or {}s", sample));
  return {};
}

// The devices that the ranks of a strategy run on.
std::span<const std::int32_t> first_devices(const Strategy& strategy,
                                            const std::optional<LoadedGraph>& graph,
                                            const Pool& pool) {
  std::int64_t ranks = strategy.devices();
  if (graph) {
    ranks = 1;
    for (const MeshAxis& axis : mesh_of(strategy, graph->axes)) ranks *= axis.size;
  }
  return std::span(pool.devices).first(static_cast<std::size_t>(std::min(ranks, pool.size())));
}

// An error for a cluster's transport parameter that the communication library overrides.
Status replaced_number(const Study& study, const comm::Parameters& communication,
                       const yaml::Loader& loader) {
  const ClusterConfig& cluster = *study.cluster;
  const auto fault_of = [&](const NodeConfig& node, const std::string& at) -> Status {
    if (!node.nics || !node.nics->transport) return {};
    const auto fault = comm::replaced_number(communication, **node.nics->transport);
    if (!fault) return {};
    return loader.error_at(at + ".nics.transport." + fault->key, fault->message, fault->help);
  };
  if (cluster.node) return fault_of(**cluster.node, "cluster.node");
  for (std::size_t i = 0; i < cluster.groups.size(); ++i)
    FORESHARD_TRY(fault_of(*cluster.groups[i].node, fmt::format("cluster.groups.{}.node", i)));
  return {};
}

}  // namespace

Result<std::int64_t> devices_of(const StudyFiles& given, yaml::Options options) {
  StudyFiles files = given;
  if (!files.study) files.model.reset();
  std::vector<yaml::Override> parts;
  take_hf_model(files, parts);
  files.strategy = "{global_batch: 1}";
  std::erase_if(options.overrides, [](const yaml::Override& each) {
    return !each.path.starts_with("cluster") && !each.path.starts_with("use");
  });
  if (files.study) {
    for (GivenPart& part : parts_of(files))
      parts.push_back({std::move(part.key), std::move(part.value)});
    options.overrides.insert(options.overrides.begin(), parts.begin(), parts.end());
  }
  yaml::Loader loader(std::move(options));
  FORESHARD_ASSIGN(const auto study, read_study(files, loader));
  FORESHARD_ASSIGN(const auto pool, pool_of(*study.cluster, study.use, loader));
  return pool.size();
}

// The catalogue's measured steps and the study's own.
static Result<std::shared_ptr<const MeasuredSteps>> measured_steps_of(const Study& study,
                                                                      yaml::Loader& loader) {
  FORESHARD_ASSIGN(auto steps, loader.read_ref<MeasuredSteps>(kPublicSteps, "measured_steps"));
  if (!study.measured_steps) return std::make_shared<const MeasuredSteps>(std::move(steps));
  for (const MeasuredStepGroup& own : (*study.measured_steps)->groups)
    if (std::ranges::find(steps.groups, own.source, &MeasuredStepGroup::source) !=
        steps.groups.end())
      return loader.error_at("measured_steps",
                             fmt::format("the catalogue has steps of source '{}', too", own.source),
                             "name your own table otherwise, and write the file again");
  steps.groups.insert(steps.groups.end(), (*study.measured_steps)->groups.begin(),
                      (*study.measured_steps)->groups.end());
  return std::make_shared<const MeasuredSteps>(std::move(steps));
}

Result<LoadedStudy> load_study(const StudyFiles& given, yaml::Options options) {
  StudyFiles files = given;
  std::vector<yaml::Override> overrides;
  take_hf_model(files, overrides);
  FORESHARD_TRY(take_hf_keys(files, options.overrides));
  FORESHARD_TRY(refuse_download(files, options.catalogue));
  if (files.study) {
    for (GivenPart& part : parts_of(files))
      overrides.push_back({std::move(part.key), std::move(part.value)});
    options.overrides.insert(options.overrides.begin(), overrides.begin(), overrides.end());
  }
  const std::vector<fs::path> catalogue = options.catalogue;
  const std::vector<yaml::Override> given_keys = options.overrides;
  yaml::Loader loader(std::move(options));
  FORESHARD_ASSIGN(auto study, read_study(files, loader));
  for (const NodeGroup& group : study.cluster->node_groups()) {
    const DeviceType& device = *group.node->device;
    if (const std::string fault = fault_in(*device.efficiency); !fault.empty())
      return loader.error_at("cluster", "efficiency of " + device.name + ": " + fault);
  }

  // What the command line says of a setting closes it.
  std::erase_if(study.open, [&](OpenSetting setting) {
    const std::string key = fmt::format("strategy.{}", yaml::name_of(setting));
    return std::ranges::find(given_keys, key, &yaml::Override::path) != given_keys.end();
  });
  if (study.disturbances && !files.sizes_matter)
    return loader.error_at("disturbances", "a search compares steps that nothing disturbs",
                           "leave them out, and simulate what it finds with them");

  std::vector<yaml::Input> imported;
  std::vector<std::string> remarks;
  FORESHARD_ASSIGN(auto model, model_of(study, given, files, loader, imported, remarks));
  FORESHARD_ASSIGN(auto communication, files.parameters != nullptr
                                           ? Result<comm::Parameters>(*files.parameters)
                                           : communication_of(study, loader));
  FORESHARD_TRY(replaced_number(study, communication, loader));
  FORESHARD_ASSIGN(auto errors, read_parameter_errors(loader));
  FORESHARD_ASSIGN(auto measured_steps, measured_steps_of(study, loader));
  Strategy strategy = *study.strategy;
  if (strategy.framework->name.empty()) {
    FORESHARD_ASSIGN(auto framework,
                     loader.read_ref<Framework>(kDefaultFramework, "strategy.framework"));
    strategy.framework = {.value = std::move(framework), .name = std::string(kDefaultFramework)};
  }
  FORESHARD_TRY(read_schedule_file(strategy, loader, imported));
  FORESHARD_ASSIGN(auto pool, pool_of(*study.cluster, study.use, loader));
  std::optional<LoadedGraph> graph;
  if (has_graph(study, files)) {
    if (!study.open.empty())
      return loader.error_at("open", "a graph's settings are not tried out", "say them");
    FORESHARD_ASSIGN(graph, load_graph(*study.graph, strategy, folder_of(loader, "graph.file"),
                                       loader, "graph", imported));
    Model named;
    named.name = graph->graph.name;
    model = std::move(named);
    if (files.sizes_matter) {
      take_micro_batch(strategy, *graph);
      FORESHARD_TRY(graph_misfit(strategy, *graph, pool, loader));
    }
  } else if (files.sizes_matter) {
    FORESHARD_TRY(misfit(strategy, model, pool.size(), loader, "strategy", pool.shortage));
  }

  const auto groups =
      groups_with(*study.cluster, files.sizes_matter ? first_devices(strategy, graph, pool)
                                                     : std::span(std::as_const(pool.devices)));
  strategy.one_copy_in_fp8 = std::ranges::all_of(
      groups, [](const NodeGroup& group) { return reads_fp8_either_way(*group.node->device); });
  const fs::path said_in = file_of(loader, "strategy.framework.attention").parent_path();
  const bool by_default = std::ranges::any_of(catalogue, [&](const fs::path& folder) {
    return said_in.lexically_normal() == (folder / "frameworks").lexically_normal();
  });
  FORESHARD_TRY(take_attention(strategy, groups, loader, by_default, remarks));
  if (study.train) FORESHARD_TRY(fault_in_training(*study.train, strategy, graph, loader));

  std::vector<yaml::Input> inputs = loader.inputs();
  inputs.insert(inputs.end(), imported.begin(), imported.end());
  for (yaml::Input& input : inputs) input.path = shown_path(input.path, catalogue);
  const std::string name = files.text     ? files.text->path
                           : !files.study ? fmt::format("{} on {}", model.name, study.cluster->name)
                           : *files.study == "-" ? "stdin"
                                                 : name_of_study(*files.study);
  LoadedStudy loaded{.name = name,
                     .description = study.description,
                     .cluster = *study.cluster,
                     .model = std::move(model),
                     .remarks = std::move(remarks),
                     .graph = std::move(graph),
                     .strategy = std::move(strategy),
                     .communication = std::move(communication),
                     .errors = std::move(errors),
                     .measured_steps = std::move(measured_steps),
                     .disturbances = study.disturbances,
                     .pool = std::move(pool),
                     .train = study.train,
                     .memory_margin = study.memory_margin,
                     .open = study.open,
                     .assumed = study.assumed,
                     .inputs = std::move(inputs),
                     .loader = std::move(loader)};
  if (files.sizes_matter) FORESHARD_TRY(settle(loaded));
  return loaded;
}

std::span<const std::int32_t> LoadedStudy::used() const {
  return first_devices(strategy, graph, pool);
}

}  // namespace foreshard::study
