// Models of a study that a config.json of Hugging Face describes: HuggingFaceModel of study.h.
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/limits.h"

#include "sim/study/study.h"
#include "strategies/graph/hf_config.h"

namespace foreshard::study {
namespace {

namespace fs = std::filesystem;

}  // namespace

const yaml::Table<HuggingFaceModel>& yaml_table(const HuggingFaceModel*) {
  static const auto table =
      yaml::Table<HuggingFaceModel>("huggingface", "A model of a Hugging Face repository.")
          .required("config", &HuggingFaceModel::config,
                    "Path of its config.json, or of the folder with it, relative to this file.",
                    yaml::non_empty())
          .optional("name", &HuggingFaceModel::name,
                    "Name in reports (default: the folder of the file).")
          .optional("sequence", &HuggingFaceModel::sequence,
                    "Tokens per training sample (default: the model's table of positions where it "
                    "has one, otherwise 2,048).",
                    yaml::at_least(1))
          .optional("extend", &HuggingFaceModel::extend,
                    "Positions reach to `sequence` where the file states fewer, as a run does that "
                    "stretches its rotary positions (YaRN). Otherwise a longer sequence is "
                    "refused.");
  return table;
}

bool is_hf_config(const std::string& model) {
  std::error_code status;
  if (model == "-") {
    const auto text = foreshard::read_file(model, limits::kConfig);
    return text && looks_like_hf_config(*text);
  }
  return model.ends_with(".json") || fs::is_regular_file(fs::path(model) / "config.json", status);
}

Result<ImportedModel> import_model(const HuggingFaceModel& source, const fs::path& folder,
                                   yaml::Loader& loader) {
  std::error_code status;
  fs::path path = source.config == "-" ? fs::path("-") : folder / source.config;
  if (fs::is_directory(path, status)) path /= "config.json";
  FORESHARD_ASSIGN(auto bytes, foreshard::read_file(path, limits::kConfig));
  const std::string name = source.name.value_or(
      path == "-" ? "model" : fs::absolute(path).parent_path().filename().string());
  FORESHARD_ASSIGN(HfModel model,
                   read_hf_config(bytes, name, source.sequence, source.extend, loader));
  return ImportedModel{std::move(model.model),
                       std::move(model.remarks),
                       {path == "-" ? "stdin" : path.string(), std::move(bytes)}};
}

}  // namespace foreshard::study
