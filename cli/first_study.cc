#include "cli/first_study.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/yaml/given.h"
#include "base/yaml/quoted.h"
#include "cli/kinds.h"
#include "cli/load.h"

#include "sim/search/output.h"
#include "sim/search/search.h"
#include "sim/study/run.h"
#include "sim/study/study.h"

namespace foreshard::cli {
namespace {

constexpr std::int64_t kMostGpus = 16'384;  // a minute of search and simulation
constexpr double kMostSequences = 1 << 30;  // Strategy::global_batch
constexpr std::chrono::duration<double> kSearchLimit{30};
// Keys of a strategy that a study shows even where they have their defaults.
const std::set<std::string> kAlwaysShown{"tensor_parallel", "pipeline_parallel", "data_parallel",
                                         "micro_batch", "global_batch"};

Error refused(const std::string& what) {
  return {Error::Code::kInvalidInput, what};
}

std::vector<std::string> entries(const char* kind, const Environment& environment) {
  return entries_of(*find_kind(kind), environment.catalogue);
}

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// The error for a name that is not in the catalogue.
Error unknown(std::string_view what, const std::string& name, const std::vector<std::string>& known,
              std::string_view list) {
  const auto near = nearest_name(name, known);
  return refused(fmt::format(
      "the catalogue has no {} '{}'\n   help: {}", what, name,
      near ? fmt::format("did you mean '{}'?", *near) : fmt::format("{} lists them", list)));
}

bool names_a_file(const std::string& name) {
  return yaml::is_file_name(name);
}

std::int64_t devices_of_node(const ClusterConfig& cluster) {
  return cluster.node_groups().front().node->gpus;
}

// The number of the form 2^k or 3 x 2^k nearest to `value`, by ratio: it divides well. At least 1.
std::int64_t near_round(double value) {
  std::int64_t nearest = 1;
  const auto ratio = [&](std::int64_t one) {
    return std::abs(std::log(static_cast<double>(one) / value));
  };
  for (std::int64_t power = 1; power <= std::int64_t{1} << 40; power *= 2)
    for (const std::int64_t one : {power, 3 * power})
      if (ratio(one) < ratio(nearest)) nearest = one;
  return nearest;
}

// The strategy as keys of YAML, without those that have the values of `usual`.
std::string strategy_text(const search::Simulated& found, const Strategy& usual) {
  search::Simulated other = found;
  other.strategy = usual;
  const auto plain = search::settings_of(other);
  std::string text = "strategy:\n";
  for (const yaml::Override& one : search::settings_of(found)) {
    if (!one.path.starts_with("strategy.")) continue;
    const std::string key = one.path.substr(one.path.find('.') + 1);
    const bool usual_value = std::ranges::any_of(plain, [&](const yaml::Override& each) {
      return each.path == one.path && each.value == one.value;
    });
    if (!usual_value || kAlwaysShown.contains(key))
      text += fmt::format("  {}: {}\n", key, one.value);
  }
  return text;
}

search::SearchOptions small_search() {
  search::SearchOptions options{.simulate = 3, .certify = 0, .front = 0};
  options.space.level = 0;
  options.space.offload = false;
  options.time_limit = kSearchLimit;
  return options;
}

Result<study::LoadedStudy> loaded(const std::string& text, const Environment& environment,
                                  bool sizes_matter) {
  study::StudyFiles files{.text = yaml::Input{"study", text}};
  files.sizes_matter = sizes_matter;
  return study::load_study(files, {.catalogue = environment.catalogue});
}

// Whether the study can be simulated, as `check` finds out.
Status sound(const std::string& text, const Environment& environment) {
  FORESHARD_ASSIGN(const auto study, loaded(text, environment, true));
  FORESHARD_ASSIGN(const auto cluster, study::cluster_of(study));
  FORESHARD_TRY(study::program_of(study, cluster));
  return {};
}

}  // namespace

std::string FirstStudy::reference(const std::string& name, bool in_file) const {
  if (!names_a_file(name) && !study::is_hf_config(name)) return name;
  std::error_code fault;
  const auto place = std::filesystem::proximate(name, folder_, fault);
  return yaml::quoted(in_file && !folder_.empty() && !fault ? place.string() : name);
}

Status FirstStudy::set_model(const std::string& name) {
  if (!study::is_hf_config(name) && !name.starts_with('{') && !names_a_file(name)) {
    const auto known = entries("model", *environment_);
    if (!is_among(known, name)) return unknown("model", name, known, "foreshard catalog models");
  }
  yaml::Loader loader({.catalogue = environment_->catalogue});
  FORESHARD_ASSIGN(model_, load_model(name, loader, ""));
  model_name_ = name;
  return {};
}

Status FirstStudy::set_cluster(const std::string& name) {
  std::string machine = name;
  is_cluster_ = as_cluster(name, environment_->catalogue) == name;
  if (!name.starts_with('{') && !names_a_file(name)) {
    auto known = entries("cluster", *environment_);
    if (!is_among(known, name)) {
      is_cluster_ = false;
      const auto nodes = entries("node", *environment_);
      const auto devices = entries("device", *environment_);
      if (is_among(devices, name)) machine = "by-device/" + name;
      if (!is_among(nodes, machine)) {
        known.insert(known.end(), nodes.begin(), nodes.end());
        known.insert(known.end(), devices.begin(), devices.end());
        return unknown("cluster, node or device", name, known,
                       "foreshard catalog clusters (or nodes, or devices)");
      }
    }
  }
  yaml::Loader loader({.catalogue = environment_->catalogue});
  const std::string text =
      is_cluster_ ? machine : fmt::format("{{node: {}}}", reference(machine, false));
  FORESHARD_ASSIGN(cluster_, yaml::read_given<ClusterConfig>(text, loader));
  machine_ = machine;
  return {};
}

std::string FirstStudy::usual_gpus() const {
  const bool full = gpus_ > 0 && cluster_.groups.empty() && !machine_.starts_with('{');
  return std::to_string(full ? 2 * gpus_ : cluster_.device_count());
}

Status FirstStudy::set_gpus(const std::string& count) {
  std::int64_t gpus = 0;
  const char* const end = count.data() + count.size();
  const auto read = std::from_chars(count.data(), end, gpus);
  if (read.ec != std::errc() || read.ptr != end || gpus < 1)
    return refused(fmt::format("'{}' is no number of GPUs; write for example {}", count,
                               cluster_.device_count()));
  if (gpus > kMostGpus)
    return refused(
        fmt::format("a first study has at most {} GPUs\n   help: write it for fewer, and "
                    "change its nodes and data_parallel",
                    kMostGpus));
  const std::int64_t node = devices_of_node(cluster_);
  const std::int64_t whole = cluster_.device_count();
  if (gpus != whole && (!cluster_.groups.empty() || machine_.starts_with('{')))
    return refused(
        fmt::format("{} has {} GPUs, and its nodes are written out: give {}, or change them",
                    machine_, whole, whole));
  if (gpus > node && gpus % node != 0)
    return refused(fmt::format("{} GPUs are no whole number of nodes of {}\n   help: give {} or {}",
                               gpus, node, gpus / node * node, (gpus / node + 1) * node));
  gpus_ = gpus;
  return can_be_cut();
}

Status FirstStudy::can_be_cut() const {
  yaml::Loader loader({.catalogue = environment_->catalogue});
  if (!is_cluster_ || gpus_ == cluster_.device_count()) return {};
  const std::int64_t nodes = std::max<std::int64_t>(gpus_ / devices_of_node(cluster_), 1);
  const auto cut = yaml::read_given<ClusterConfig>(
      fmt::format("{{extends: {}, nodes: {}}}", reference(machine_, false), nodes), loader);
  if (cut && build_cluster(*cut, loader)) return {};
  return refused(fmt::format(
      "{} has {} GPUs, and its fabric or its faults do not fit {}\n   help: give {}, or a "
      "node instead of the cluster",
      machine_, cluster_.device_count(), gpus_, cluster_.device_count()));
}

Status FirstStudy::set_batch(const std::string& text) {
  const bool bare = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const auto length = study::parse_training_length(bare ? text + " sequences" : text);
  const bool whole = length && (length->tokens || std::floor(length->amount) == length->amount);
  constexpr double kMostTokens = 1e12;
  if (!whole || length->amount > (length->tokens ? kMostTokens : kMostSequences))
    return refused(fmt::format("'{}' is no batch; write for example 512 (sequences) or \"{}\"",
                               text, usual_batch()));
  batch_ = *length;
  return {};
}

Status FirstStudy::set_train(const std::string& text) {
  if (!text.empty()) FORESHARD_TRY(study::parse_training_length(text));
  train_ = text;
  return {};
}

std::int64_t FirstStudy::batch() const {
  if (!batch_.tokens) return static_cast<std::int64_t>(batch_.amount);
  const auto tokens_of_round = static_cast<double>(gpus_ * model_.sequence);
  return gpus_ * near_round(batch_.amount / tokens_of_round);
}

std::string FirstStudy::cluster_text(bool in_file) const {
  const std::string machine = reference(machine_, in_file);
  const std::int64_t node = devices_of_node(cluster_);
  const std::int64_t nodes = std::max<std::int64_t>(gpus_ / node, 1);
  std::string text;
  if (!is_cluster_)
    text = fmt::format(
        "cluster:\n  name: {}-{}\n  nodes: {}\n  node: {}\n"
        "  fabric: {{kind: single-switch}}  # never the bottleneck; docs/fabrics.md has others\n",
        std::filesystem::path(machine_).stem().string(), gpus_, nodes, machine);
  else if (gpus_ == cluster_.device_count())
    text = "cluster: " + machine + "\n";
  else
    text = fmt::format("cluster: {{extends: {}, nodes: {}}}\n", machine, nodes);
  if (gpus_ >= node) return text;
  std::vector<std::string> used;
  for (std::int64_t i = 0; i < gpus_; ++i) used.push_back(fmt::format("node0/gpu{}", i));
  return text + fmt::format("use: [{}]\n", join(used));
}

std::string FirstStudy::head(bool in_file) const {
  const std::string model = reference(model_name_, in_file);
  return cluster_text(in_file) +
         (study::is_hf_config(model_name_) ? fmt::format("huggingface: {{config: {}}}\n", model)
                                           : fmt::format("model: {}\n", model)) +
         (train_.empty() ? "" : fmt::format("train: {}\n", train_));
}

Result<std::optional<std::string>> FirstStudy::written(const std::string& file,
                                                       std::string& why) const {
  const std::string batch_key = fmt::format("strategy: {{global_batch: {}}}\n", batch());
  FORESHARD_ASSIGN(const auto study, loaded(head(false) + batch_key, *environment_, false));
  FORESHARD_ASSIGN(const auto found, search::run_search(study, small_search()));
  if (!found.has_answer()) {
    why = found.nearest ? search::missing_text(*found.nearest) : search::nothing_suits(found);
    return std::optional<std::string>();
  }
  std::string text = yaml::comment(
                         "Written by `foreshard init`. The strategy is the fastest of a "
                         "small search that fits;") +
                     yaml::comment(fmt::format("`foreshard search {}` tries much more.", file));
  if (found.is_tight())
    text += yaml::comment("Its memory is tight: more GPUs, or a smaller model, leave a margin.");
  const std::string strategy = strategy_text(found.simulated.front(), study.strategy);
  FORESHARD_TRY(sound(head(false) + strategy, *environment_));
  return std::optional(text + head(true) + strategy);
}

}  // namespace foreshard::cli
