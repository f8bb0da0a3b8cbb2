#include "cli/given_result.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/file.h"
#include "base/gzip/gzip.h"
#include "base/json.h"
#include "base/limits.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/report/json.h"
#include "sim/report/predict.h"

namespace foreshard::cli {

bool is_result(const std::string& name) {
  if (name == "-") {
    // A result is JSON that names its schema. Stdin is read once and kept.
    const auto text = read_file(name, limits::kResult);
    return text && (is_gzip(*text) || schema_in(*text).starts_with("foreshard."));
  }
  if (name.ends_with(".json") || name.ends_with(".fsr") || name.ends_with(".gz")) return true;
  std::error_code status;
  if (!std::filesystem::is_regular_file(name, status)) return false;
  std::array<char, 2> first{};
  std::ifstream(name, std::ios::binary).read(first.data(), first.size());
  return is_gzip({first.data(), first.size()});
}

Result<std::string> read_result(const std::string& name) {
  FORESHARD_ASSIGN(auto text, read_file(name, limits::kResult));
  if (is_gzip(text)) return gunzip(text, name, limits::kResult);
  return text;
}

Result<std::string> simulated_result(const study::LoadedStudy& study) {
  const Busy busy("simulating");
  FORESHARD_ASSIGN(const auto report,
                   report::predict(study, {.timeline = true},
                                   {.sensitivities = !study.disturbances, .bundle = true}));
  return report::to_json(report);
}

Result<std::string> given_result(const std::string& name, const std::vector<std::string>& sets,
                                 const Environment& environment) {
  if (is_result(name)) return read_result(name);
  FORESHARD_ASSIGN(const auto study, StudyOptions::named(name, sets).load(environment));
  return simulated_result(study);
}

}  // namespace foreshard::cli
