#include "cli/load.h"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>

#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/yaml/given.h"
#include "base/yaml/quoted.h"
#include "cli/kinds.h"
#include "cli/output.h"

#include "sim/study/study.h"

namespace foreshard::cli {
namespace {

namespace fs = std::filesystem;

bool is_entry(const std::string& name, const char* kind, const std::vector<fs::path>& catalogue) {
  if (name.empty() || name.starts_with('/') || name.find("..") != std::string::npos) return false;
  return std::ranges::any_of(catalogue, [&](const fs::path& folder) {
    std::error_code status;
    return fs::is_regular_file(folder / find_kind(kind)->folder / (name + ".yaml"), status);
  });
}

bool is_node(const std::string& name, const std::vector<fs::path>& catalogue) {
  if (name.starts_with('{')) return kind_of("-", name).name == "node";
  if (!yaml::is_file_name(name))
    return is_entry(name, "node", catalogue) && !is_entry(name, "cluster", catalogue);
  const auto text = read_file(name, limits::kConfig);
  return text && kind_of(name, *text).name == "node";
}

}  // namespace

std::string as_cluster(const std::string& name, const std::vector<fs::path>& catalogue) {
  if (!is_node(name, catalogue)) return name;
  if (name.starts_with('{')) return fmt::format("{{node: {}}}", name);
  return fmt::format("{{name: {}, node: {}}}", yaml::quoted(fs::path(name).stem().string()),
                     yaml::quoted(name));
}

Result<ClusterConfig> load_cluster(const std::string& name, yaml::Loader& loader,
                                   const std::vector<fs::path>& catalogue, std::string_view at) {
  return yaml::read_given<ClusterConfig>(as_cluster(name, catalogue), loader, at);
}

Result<Model> load_model(const std::string& name, yaml::Loader& loader, std::string_view at) {
  if (!study::is_hf_config(name)) {
    FORESHARD_ASSIGN(auto model, yaml::read_given<Model>(name, loader, at));
    return checked(std::move(model));
  }
  auto imported = study::import_model({.config = name, .name = {}, .sequence = {}}, {}, loader);
  if (imported) {
    for (const std::string& remark : imported->remarks) note(remark);
    return checked(imported->model);
  }
  const Error& error = imported.error();
  return error.code == Error::Code::kIo ? error : Error{error.code, name + ": " + error.message};
}

Result<Strategy> load_strategy(const std::string& name, const Model& model,
                               const Environment& environment) {
  yaml::Loader loader({.catalogue = environment.catalogue, .overrides = {}});
  FORESHARD_ASSIGN(Strategy complete, yaml::read_given<Strategy>(name, loader));
  if (complete.framework->name.empty()) {
    FORESHARD_ASSIGN(auto framework,
                     loader.read_ref<Framework>(study::kDefaultFramework, "framework"));
    complete.framework = {.value = std::move(framework),
                          .name = std::string(study::kDefaultFramework)};
  }
  FORESHARD_TRY(study::misfit(complete, model, complete.devices(), loader, ""));
  return complete;
}

namespace {

// Overrides of strategy and model whose value is a scalar: key -> value.
std::map<std::string, std::string> settled(const std::vector<yaml::Override>& sets) {
  std::map<std::string, std::string> keys;
  for (const yaml::Override& set : sets) {
    const bool ours = set.path.starts_with("strategy.") || set.path.starts_with("model.");
    const bool value = set.value.find_first_of("{[") == std::string::npos;
    if (ours && value) keys[set.path] = set.value;
  }
  return keys;
}

const launch::Line* line_of(const std::vector<launch::Line>& lines, std::string_view key) {
  const auto found = std::ranges::find_if(lines, [&](auto& line) { return line.key == key; });
  return found == lines.end() ? nullptr : &*found;
}

}  // namespace

Result<launch::Imported> import_given(const ImportOptions& options) {
  launch::Request request{.text = options.arguments,
                          .name = "--megatron",
                          .format = options.format,
                          .devices = options.devices,
                          .settled = settled(options.sets)};
  std::string text;
  if (options.file.empty()) {
    request.format = "megatron";
  } else {
    FORESHARD_ASSIGN(text, read_file(options.file, limits::kConfig));
    request.text = text;
    request.name = options.file == "-" ? "stdin" : options.file;
  }
  return launch::import_launch(request);
}

Status add_to_study(const launch::Imported& imported, study::StudyFiles& files,
                    std::vector<yaml::Override>& overrides) {
  files.strategy = launch::in_braces(imported.strategy);
  if (!imported.open.empty())
    overrides.insert(overrides.begin(), {"open", "[" + join(imported.open) + "]"});
  const launch::Line* sequence = line_of(imported.model, "sequence");
  if (files.model) {
    const bool onnx = files.model->ends_with(".onnx");
    const char* key = study::is_hf_config(*files.model) ? "huggingface.sequence" : "model.sequence";
    if (sequence != nullptr && !onnx) overrides.insert(overrides.begin(), {key, sequence->value});
    return {};
  }
  if (files.study || imported.model.empty()) return {};
  if (imported.missing.empty()) {
    files.model = launch::in_braces(imported.model);
    return {};
  }
  std::vector<std::string> sets;
  for (const std::string& key : imported.missing) sets.push_back("--set model." + key + "=N");
  return Error{Error::Code::kInvalidInput,
               fmt::format("{}: error: the model lacks {}\n   help: give --model, or {}",
                           imported.name, join(imported.missing), join(sets, " "))};
}

void note_report(const launch::Imported& imported) {
  for (const std::string& line : launch::report(imported)) note(line);
}

}  // namespace foreshard::cli
