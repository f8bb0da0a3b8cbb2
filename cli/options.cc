#include "cli/options.h"

#include <fmt/format.h>
#include <utility>

namespace foreshard::cli {

void StudyOptions::declare(Declaration& declaration) {
  declaration.argument("STUDY.yaml", study_,
                       "A study: the file that names cluster, model and strategy.");
  declaration.option("--cluster", "FILE", cluster_, "Cluster: a file or a catalogue name.");
  declaration.option("--model", "FILE", model_,
                     "Model: a file, a catalogue name, or a config.json of Hugging Face.");
  declaration.option("--strategy", "FILE", strategy_, "Strategy: a file or a catalogue name.");
  declaration.option("--communication", "FILE", communication_,
                     "Numbers of the communication library: a file (as calibrate writes it) or a "
                     "catalogue name.");
  add_set(declaration, sets_);
}

Result<study::LoadedStudy> StudyOptions::load(const Environment& environment,
                                              bool sizes_matter) const {
  auto overrides = overrides_of(sets_);
  if (!overrides) return overrides.error();
  study::StudyFiles files;
  const auto given = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string>(text);
  };
  if (!study_.empty()) files.study = study_;
  files.cluster = given(cluster_);
  files.model = given(model_);
  files.strategy = given(strategy_);
  files.communication = given(communication_);
  files.sizes_matter = sizes_matter;
  if (!files.study && !(files.cluster && files.model && files.strategy))
    return Error{Error::Code::kInvalidInput,
                 "give a study (STUDY.yaml), or all of --cluster, --model and --strategy"};
  return study::load_study(
      files, {.catalogue = environment.catalogue, .overrides = *std::move(overrides)});
}

std::string StudyOptions::beside_study() const {
  if (!cluster_.empty()) return "--cluster";
  if (!model_.empty()) return "--model";
  if (!strategy_.empty()) return "--strategy";
  if (!communication_.empty()) return "--communication";
  return sets_.empty() ? "" : "--set";
}

Result<std::vector<yaml::Override>> overrides_of(const std::vector<std::string>& sets) {
  std::vector<yaml::Override> overrides;
  for (const std::string& set : sets) {
    const auto equals = set.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{Error::Code::kInvalidInput,
                   fmt::format("--set {}: write path.to.key=value, for example "
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
  declaration.option("-o,--output", "FILE", path,
                     "Write the result to this file instead of stdout.");
}

void add_set(Declaration& declaration, std::vector<std::string>& sets) {
  declaration.repeatable("--set", "KEY=VALUE", sets,
                         "Change a value of the files: path.to.key=value. Repeatable.");
}

}  // namespace foreshard::cli
