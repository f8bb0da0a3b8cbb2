#include "cli/imported.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/output.h"

namespace foreshard::cli {
namespace {

constexpr Bytes kLargestFile = 4_MiB;

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
    FORESHARD_ASSIGN(text, read_file(options.file, kLargestFile));
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
