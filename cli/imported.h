/// \file
/// Strategies and models imported from another framework's configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "sim/study/study.h"
#include "strategies/launch/launch.h"

namespace foreshard::cli {

struct ImportOptions {
  std::string file{};       ///< Path of the configuration, or "-" (stdin).
  std::string arguments{};  ///< Options of Megatron-LM, instead of a file.
  std::string format{};     ///< Same as launch::Request::format.
  std::optional<std::int64_t> devices{};
  std::vector<yaml::Override> sets{};  ///< Overrides; only those of strategy and model are used.
};

/// \return errors of launch::import_launch; kIo if the file cannot be read.
Result<launch::Imported> import_given(const ImportOptions& options);

/// Puts the imported strategy into `files`, and the imported model if neither a model nor a study
/// is given. If a model is given, only the imported sequence length is used.
/// \return kInvalidInput if the model lacks something.
Status add_to_study(const launch::Imported& imported, study::StudyFiles& files,
                    std::vector<yaml::Override>& overrides);

/// Reports on stderr which settings were used, which have no effect and which are not supported.
void note_report(const launch::Imported& imported);

}  // namespace foreshard::cli
