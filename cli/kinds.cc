#include "cli/kinds.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "base/yaml/describe.h"
#include "evidence/row_format.h"

#include "sim/elastic/timeline.h"
#include "sim/search/graph/rules.h"
#include "sim/search/space.h"
#include "sim/study/study.h"
#include "sim/sweep/sweep.h"
#include "strategies/comm/nccl/tables.h"
#include "strategies/comm/parameters.h"
#include "strategies/graph/graph_config.h"
#include "strategies/graph/hf_type.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_config.h"
#include "topology/hardware.h"
#include "validate/profile/kernel_names.h"
#include "validate/tables/collective_rows.h"
#include "validate/tables/kernel_rows.h"

namespace foreshard::cli {
namespace {

namespace fs = std::filesystem;

// The object in its printed form. The derived sizes of a model are filled in.
template <class T>
T shown(T object) {
  return object;
}
Model shown(Model object) {
  return with_sizes(std::move(object));
}
study::Study shown(study::Study object) {
  if (object.model) object.model->value = with_sizes(std::move(object.model->value));
  return object;
}

// The fault of a well-formed object: a model may have sizes that contradict each other.
template <class T>
Status fault_in(const T&) {
  return {};
}
Status fault_in(const Model& object) {
  const auto sound = checked(object);
  return sound ? Status() : sound.error();
}
Status fault_in(const study::Study& object) {
  return object.model ? fault_in(object.model->value) : Status();
}

template <class T>
Result<std::string> echo_file(yaml::Loader& loader, const fs::path& path) {
  FORESHARD_ASSIGN(auto object, loader.read_file<T>(path));
  if (const Status fault = fault_in(object); !fault.ok())
    return Error{fault.error().code, path.string() + ": " + fault.error().message};
  return yaml::echo(shown(std::move(object)));
}

template <class T>
Result<std::string> echo_entry(yaml::Loader& loader, std::string_view name) {
  FORESHARD_ASSIGN(auto object, loader.read_ref<T>(name));
  return yaml::echo(shown(std::move(object)));
}

template <class T>
const nlohmann::ordered_json& schema() {
  static const nlohmann::ordered_json schema = yaml::json_schema<T>();
  return schema;
}

template <class T>
std::vector<std::string> keys() {
  std::vector<std::string> names;
  for (const auto& field : yaml_table(static_cast<const T*>(nullptr)).fields().fields)
    names.push_back(field.key);
  return names;
}

template <class T>
constexpr FileKind kind(std::string_view name, std::string_view folder, std::string_view summary) {
  return {name, folder, summary, echo_file<T>, echo_entry<T>, schema<T>, keys<T>};
}

// Top-level keys of a YAML text (the text before the colon of each line that begins in the first
// column) -> whether a list follows on that line or the next one.
std::map<std::string, bool> top_level_keys(std::string_view text) {
  const auto begins_list = [](std::string_view value) {
    value.remove_prefix(std::min(value.find_first_not_of(" \r"), value.size()));
    return value.starts_with('[') || value.starts_with("- ");
  };
  std::map<std::string, bool> found;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && colon > 0 &&
        std::isalpha(static_cast<unsigned char>(line.front())) != 0) {
      const std::size_t next = std::min(end + 1, text.size());
      const bool empty = line.find_first_not_of(" \r", colon + 1) == std::string_view::npos;
      found.emplace(line.substr(0, colon), begins_list(line.substr(colon + 1)) ||
                                               (empty && begins_list(text.substr(next))));
    }
    begin = end + 1;
  }
  return found;
}

// Number of keys that the kind knows, and how many of them are lists, or not, as in the kind's
// schema.
std::pair<std::ptrdiff_t, std::ptrdiff_t> likeness(const FileKind& kind,
                                                   const std::map<std::string, bool>& written) {
  std::pair<std::ptrdiff_t, std::ptrdiff_t> found{0, 0};
  const auto& definitions = kind.schema()["definitions"];
  const auto definition = definitions.find(kind.schema()["title"].get<std::string>());
  for (const std::string& key : kind.keys()) {
    const auto place = written.find(key);
    if (place == written.end()) continue;
    ++found.first;
    if (definition == definitions.end()) continue;
    const auto& property = (*definition)["properties"][key];
    const bool list = property.contains("type") && property["type"] == "array";
    if (list == place->second) ++found.second;
  }
  return found;
}

// The kind of the nearest folder that has the name of a catalogue folder; nullptr if there is none.
const FileKind* kind_of_folder(fs::path folder) {
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    for (const char* nested : {"devices/draw", "devices/efficiency", "tables/kernels"})
      if (folder.filename() == fs::path(nested).filename()) return find_kind(nested);
    const FileKind* kind = find_kind(folder.filename().string());
    if (kind != nullptr && folder.filename() == kind->folder) return kind;
  }
  return nullptr;
}

}  // namespace

std::span<const FileKind> kinds() {
  static constexpr std::array<FileKind, 26> kKinds{
      kind<study::Study>("study", "studies", "A cluster, a model and a strategy."),
      kind<ClusterConfig>("cluster", "clusters", "Nodes and the fabric between them."),
      kind<comm::Parameters>("communication", "communication",
                             "What the communication library adds to the links."),
      kind<DeviceType>("device", "devices", "A kind of GPU."),
      kind<DeviceDraw>("draw", "devices/draw", "What a device draws while it does what."),
      kind<accuracy::Exclusions>("exclusions", "accuracy",
                                 "Measured rows that the accuracy of collectives leaves out."),
      kind<elastic::Timeline>("elastic", "elastic",
                              "A run on a machine that fails (foreshard elastic)."),
      kind<elastic::FailureRates>("failures", "failures", "How often the parts of a machine fail."),
      kind<study::ParameterErrors>(
          "errors", "intervals", "How far off predictions are, by how sure their parameters are."),
      kind<study::MeasuredSteps>("steps", "steps",
                                 "Measured training steps, which make intervals of predictions."),
      kind<DeviceEfficiency>("efficiency", "devices/efficiency",
                             "How close a device comes to its data sheet."),
      kind<Framework>("framework", "frameworks", "What a training framework fuses and overlaps."),
      kind<GraphConfig>("graph", "graphs", "Operators and tensors of one step, one by one."),
      kind<Hardware>("hardware", "hardware", "How devices present themselves to tools."),
      kind<profile::KernelNames>("kernel_names", "profiles",
                                 "What kernels of a profile do, by their names (--kernel-names)."),
      kind<accuracy::KernelFormat>("kernel_table", "tables/kernels",
                                   "How tables of measured kernels write things down."),
      kind<Model>("model", "models", "A transformer by its hyper-parameters."),
      kind<HfType>("model_type", "huggingface",
                   "How the config.json of a model type of Hugging Face is read."),
      kind<NodeConfig>("node", "nodes", "A host: its devices and what joins them."),
      kind<search::GraphRules>(
          "rules", "rules", "How a search of a graph may split what has certain names (--rules)."),
      kind<search::SearchSpace>("search", "searches", "Which strategies a search tries (--space)."),
      kind<Strategy>("strategy", "strategies", "How a step is divided over devices."),
      kind<sweep::Sweep>("sweep", "sweeps", "A grid of studies (foreshard study)."),
      kind<accuracy::RowFormat>("table", "tables",
                                "How tables of measured training steps write things down."),
      kind<Transport>("transport", "transports", "How a network's adapters are driven."),
      kind<comm::nccl::Tables>("tuner", "tuners",
                               "What NCCL takes hardware to be, and its tuner's constants."),
  };
  return kKinds;
}

const FileKind* find_kind(std::string_view name) {
  for (const FileKind& kind : kinds())
    if (kind.name == name || kind.folder == name) return &kind;
  return nullptr;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const FileKind& kind : kinds()) names.emplace_back(kind.name);
  return names;
}

const FileKind& kind_of(const fs::path& path, std::string_view text) {
  std::error_code status;
  const fs::path place = path == "-" ? fs::path() : fs::absolute(path, status).lexically_normal();
  const auto written = top_level_keys(text);
  const FileKind* best = &kinds().front();
  std::pair<std::ptrdiff_t, std::ptrdiff_t> most{0, 0};
  for (const FileKind& kind : kinds()) {
    const auto matches = likeness(kind, written);
    if (matches.first > 0 && matches > most) {
      best = &kind;
      most = matches;
    }
  }
  // The folder only decides between kinds that know equally many keys, because folders outside of a
  // catalogue may also be called models or nodes.
  const FileKind* of_folder = kind_of_folder(place.parent_path());
  const bool fits = of_folder != nullptr && likeness(*of_folder, written).first >= most.first;
  return fits ? *of_folder : *best;
}

Model with_sizes(Model model) {
  model.kv_heads = model.kv();
  if (model.experts > 0) model.expert_ffn = model.expert_width();
  model.ffn = model.has_dense_layers() ? model.ffn_width() : 0;
  // If hidden is no multiple of heads, the model is refused elsewhere.
  if (model.heads > 0 && model.hidden % model.heads == 0) model.head_dim = model.head_size();
  return model;
}

std::vector<std::string> entries_of(const FileKind& kind, const std::vector<fs::path>& catalogue) {
  std::set<std::string> names;
  for (const fs::path& folder : catalogue) {
    const fs::path root = folder / kind.folder;
    std::error_code status;
    for (auto entry = fs::recursive_directory_iterator(root, status);
         !status && entry != fs::recursive_directory_iterator(); entry.increment(status)) {
      const fs::path name = entry->path().lexically_relative(root);
      if (name.extension() != ".yaml") continue;
      // devices/draw and devices/efficiency are kinds of their own.
      const FileKind* nested =
          find_kind((fs::path(kind.folder) / name.parent_path()).generic_string());
      if (nested != nullptr && nested != &kind) continue;
      names.insert(fs::path(name).replace_extension().generic_string());
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace foreshard::cli
