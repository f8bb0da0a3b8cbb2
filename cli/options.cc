#include "cli/options.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "base/text.h"
#include "cli/found.h"
#include "cli/load.h"
#include "cli/suggestions.h"

#include "validate/calibrate/nccl_tests.h"

namespace foreshard::cli {
namespace {

constexpr const char* kFromFile = "from-file";

// The error for a path that no study has, if it is known what was meant.
Status may_set(const yaml::Override& set) {
  const auto refuse = [&](const std::string& help) {
    return Error{Error::Code::kInvalidInput,
                 fmt::format("--set {0}={1}: a study has no key '{0}'\n   help: {2}", set.path,
                             set.value, help)};
  };
  if (const auto path = suggest_path(set.path))
    return refuse(fmt::format("did you mean '--set {}={}'?", *path, set.value));
  const std::size_t dot = set.path.find('.');
  const bool is_short = dot == set.path.rfind('.');  // not `cluster.node.gpus`
  const auto devices = suggest_devices(set.path.substr(dot + 1), set.value);
  return is_short && devices ? refuse(*devices) : Status();
}

}  // namespace

void StudyOptions::declare(Declaration& declaration) {
  declaration.argument("STUDY.yaml", study_,
                       "A study: the file that names cluster, model and strategy, or a catalogue "
                       "name; - reads it from stdin, as it does for the options below. Or what a "
                       "search found: the JSON that it wrote; found.json#2 is its second "
                       "strategy.");
  declaration.option("--cluster", "FILE", cluster_,
                     "Cluster: a file, a catalogue name, or YAML in braces.");
  declaration.option("--model", "FILE", model_,
                     "Model: a file, a catalogue name, YAML in braces, an .onnx file, or a "
                     "config.json of Hugging Face (or the folder that holds it).");
  declaration.option("--strategy", "FILE", strategy_,
                     "Strategy: a file, a catalogue name, or YAML in braces.");
  declaration.option("--import", "FILE", import_,
                     "Strategy, and the model where it is described, from a file of another "
                     "framework: options of Megatron-LM, DeepSpeed JSON, torchtitan TOML, "
                     "accelerate or NeMo YAML.");
  declaration.option("--megatron", "ARGS", megatron_,
                     "Likewise from options of Megatron-LM, in one word with quotes.");
  declaration.option("--communication", "FILE", communication_,
                     "Numbers of the communication library: a file (as calibrate writes it) or a "
                     "catalogue name.");
  declaration.option("--measured", "OPS.csv", measured_,
                     "Times of kernels and collectives that were measured, which take the place of "
                     "the model's (docs/calibrate.md).");
  add_set(declaration, sets_);
}

Result<study::LoadedStudy> StudyOptions::load_found(const Environment& environment,
                                                    bool sizes_matter) const {
  FORESHARD_ASSIGN(const FoundStrategy found, read_found(study_));
  if (found.result.settings.empty())
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}: the search found no strategy; foreshard explain {} says why",
                             study_, study_)};
  FORESHARD_ASSIGN(StudyOptions whole, of(found.result.asked));
  whole.tells_ = tells_;
  auto asked = whole.load(environment, false);
  if (!asked)
    return Error{asked.error().code, fmt::format("the study of {} cannot be read again\n{}", study_,
                                                 asked.error().message)};
  if (const Status same = search::unchanged(found.result.asked.digests, *asked); !same.ok())
    return Error{same.error().code, fmt::format("{}: {}", study_, same.error().message)};
  const auto set = [&](const std::string& path, const std::string& value) {
    whole.sets_.push_back(fmt::format("{}={}", path, value));
  };
  // A search makes its own schedules.
  if (!asked->strategy.schedule_actions.empty()) set("strategy.schedule_actions", "[]");
  if (!asked->strategy.pass_times.empty()) set("strategy.pass_times", "[]");
  for (const yaml::Override& each : found.result.settings[found.index]) set(each.path, each.value);
  whole.sets_.insert(whole.sets_.end(), sets_.begin(), sets_.end());
  for (const auto& [option, part] : parts())
    if (!(this->*part).empty()) whole.*part = this->*part;
  FORESHARD_ASSIGN(auto study, whole.load(environment, sizes_matter));
  return study;
}

Result<study::LoadedStudy> StudyOptions::load(const Environment& environment,
                                              bool sizes_matter) const {
  if (holds_found(study_)) return load_found(environment, sizes_matter);
  FORESHARD_ASSIGN(auto overrides, overrides_of(sets_));
  study::StudyFiles files;
  const auto given = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string>(text);
  };
  if (!study_.empty()) files.study = study_;
  files.cluster = given(as_cluster(cluster_, environment.catalogue));
  files.model = given(model_);
  files.strategy = given(strategy_);
  files.communication = given(communication_);
  files.sizes_matter = sizes_matter;
  if (!import_.empty() || !megatron_.empty())
    FORESHARD_TRY(add_imported(environment, files, overrides));
  if (Status error = missing_part(files); !error.ok()) {
    if (!sizes_matter)
      error.error().message +=
          "; a search needs of a strategy only --set strategy.global_batch=512";
    return std::move(error).error();
  }
  FORESHARD_TRY(stdin_twice());
  FORESHARD_TRY(check_may_be_study(study_));
  for (const yaml::Override& each : overrides) FORESHARD_TRY(may_set(each));
  FORESHARD_ASSIGN(auto study, study::load_study(files, {.catalogue = environment.catalogue,
                                                         .overrides = std::move(overrides)}));
  if (!measured_.empty()) FORESHARD_TRY(study::add_measured(measured_, study));
  return study;
}

Result<study::LoadedStudy> StudyOptions::load_other(const Environment& environment,
                                                    const std::string& other,
                                                    const std::vector<std::string>& sets,
                                                    bool sizes_matter) const {
  StudyOptions changed = *this;
  if (!other.empty()) changed.study_ = other;
  changed.sets_.insert(changed.sets_.end(), sets.begin(), sets.end());
  return changed.load(environment, sizes_matter);
}

std::function<Result<study::LoadedStudy>(const std::vector<yaml::Override>&)> StudyOptions::reload(
    const Environment& environment) const {
  return [options = *this, &environment](const std::vector<yaml::Override>& settings) {
    StudyOptions changed = options;
    changed.tells_ = false;
    for (const yaml::Override& one : settings)
      changed.sets_.push_back(fmt::format("{}={}", one.path, one.value));
    return changed.load(environment);
  };
}

Status StudyOptions::add_imported(const Environment& environment, study::StudyFiles& files,
                                  std::vector<yaml::Override>& overrides) const {
  if (!strategy_.empty() || (!import_.empty() && !megatron_.empty()))
    return Error{Error::Code::kInvalidInput,
                 "--strategy, --import and --megatron each give the strategy: choose one"};
  ImportOptions options{.file = import_, .arguments = megatron_, .sets = overrides};
  const bool has_cluster =
      !study_.empty() || !cluster_.empty() ||
      std::ranges::any_of(overrides, [](auto& each) { return each.path.starts_with("cluster"); });
  if (has_cluster) {
    FORESHARD_ASSIGN(options.devices, study::devices_of(files, {.catalogue = environment.catalogue,
                                                                .overrides = overrides}));
  }
  FORESHARD_ASSIGN(const auto imported, import_given(options));
  FORESHARD_TRY(add_to_study(imported, files, overrides));
  if (tells_) note_report(imported);
  return {};
}

Status StudyOptions::missing_part(const study::StudyFiles& files) const {
  if (!study_.empty()) return {};
  const auto set = [&](std::string_view part) {
    return std::ranges::any_of(sets_, [&](const std::string& path) {
      return path.starts_with(part) && path.find_first_of(".=") == part.size();
    });
  };
  std::vector<std::string> missing;
  if (cluster_.empty() && !set("cluster")) missing.emplace_back("--cluster");
  if (!files.model && !set("model") && !set("huggingface") && !set("graph"))
    missing.emplace_back("--model");
  if (!files.strategy && !set("strategy")) missing.emplace_back("--strategy");
  if (missing.empty()) return {};
  const std::string what = missing.size() == 3 ? "" : "; missing: " + join(missing);
  return Error{Error::Code::kInvalidInput,
               fmt::format("give a study (STUDY.yaml), or all of --cluster, --model and "
                           "--strategy{}\n"
                           "   help: --set strategy.tensor_parallel=8 and the like can replace "
                           "--strategy; foreshard catalog lists clusters and models",
                           what)};
}

Status StudyOptions::stdin_twice() const {
  std::vector<std::string> users;
  for (const auto& [name, value] :
       {std::pair("STUDY.yaml", &study_), std::pair("--cluster", &cluster_),
        std::pair("--model", &model_), std::pair("--strategy", &strategy_),
        std::pair("--import", &import_), std::pair("--communication", &communication_),
        std::pair("--measured", &measured_)})
    if (*value == "-") users.emplace_back(name);
  if (users.size() < 2) return {};
  return Error{Error::Code::kInvalidInput,
               fmt::format("- is given for {}, but stdin can be read only once: write all but one "
                           "to files",
                           join(users, " and "))};
}

std::string StudyOptions::first_study_option() const {
  for (const auto& [option, value] : parts())
    if (!(this->*value).empty()) return option;
  return sets_.empty() ? "" : "--set";
}

std::span<const std::pair<const char*, std::string StudyOptions::*>> StudyOptions::parts() {
  static constexpr std::array<std::pair<const char*, std::string StudyOptions::*>, 7> kParts{
      {{"--cluster", &StudyOptions::cluster_},
       {"--model", &StudyOptions::model_},
       {"--strategy", &StudyOptions::strategy_},
       {"--import", &StudyOptions::import_},
       {"--megatron", &StudyOptions::megatron_},
       {"--communication", &StudyOptions::communication_},
       {"--measured", &StudyOptions::measured_}}};
  return kParts;
}

search::Asked StudyOptions::asked() const {
  search::Asked asked{.study = study_};
  for (const auto& [option, value] : parts())
    if (!(this->*value).empty()) asked.options.push_back({option, this->*value});
  for (const std::string& set : sets_) asked.options.push_back({"--set", set});
  return asked;
}

Result<StudyOptions> StudyOptions::of(const search::Asked& asked) {
  StudyOptions options;
  options.study_ = asked.study;
  bool from_stdin = asked.study == "-";
  for (const auto& asked_for : asked.options) {
    const std::string& option = asked_for.option;
    const std::string& value = asked_for.value;
    from_stdin = from_stdin || value == "-";
    if (option == "--set") {
      options.sets_.push_back(value);
      continue;
    }
    const auto part =
        std::ranges::find_if(parts(), [&](const auto& one) { return one.first == option; });
    if (part == parts().end())
      return Error{Error::Code::kInvalidInput,
                   fmt::format("the result was asked for with '{}', which is no option", option)};
    options.*part->second = value;
  }
  if (from_stdin)
    return Error{Error::Code::kInvalidInput,
                 "a part of the study came from stdin and cannot be read again\n   help: write it "
                 "to a file, and give that"};
  return options;
}

Result<search::SearchSpace> space_of(const std::string& given, const Environment& environment) {
  if (given.empty()) return search::SearchSpace{};
  yaml::Loader loader(yaml::Options{.catalogue = environment.catalogue, .overrides = {}});
  return given.starts_with('{') ? loader.read_text<search::SearchSpace>(given, "command line")
                                : loader.read_file<search::SearchSpace>(given);
}

void add_operation(Declaration& declaration, std::string& operation) {
  std::vector<std::string> words = calibrate::nccl_tests_operations();
  words.insert(words.begin(), kFromFile);
  declaration.choice("--op", operation, std::move(words),
                     "The operation of what nccl-tests printed, where neither the text nor the "
                     "file's name tells it.");
}

std::string told_operation(const std::string& operation) {
  return operation == kFromFile ? std::string() : operation;
}

Result<std::vector<yaml::Override>> overrides_of(const std::vector<std::string>& sets) {
  std::vector<yaml::Override> overrides;
  for (const std::string& set : sets) {
    const auto equals = set.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{Error::Code::kInvalidInput,
                   fmt::format("--set {}: write KEY=VALUE with the path of a key, for example "
                               "strategy.tensor_parallel=4",
                               set)};
    overrides.push_back({set.substr(0, equals), set.substr(equals + 1)});
  }
  return overrides;
}

void add_format(Declaration& declaration, std::string& format, std::vector<std::string> words) {
  declaration.choice("--format", format, std::move(words), "Form of the result.");
}

void add_output(Declaration& declaration, std::string& path) {
  declaration.output("-o,--output", "FILE", path,
                     "Write the result to this file instead of stdout.");
}

void add_set(Declaration& declaration, std::vector<std::string>& sets) {
  declaration.repeatable("--set", "KEY=VALUE", sets,
                         "Set a value, for example strategy.tensor_parallel=4; it takes the "
                         "place of the one in the file. May be given again.");
}

}  // namespace foreshard::cli
