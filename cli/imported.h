/// \file
/// Strategies, and models, that another framework's configuration describes.
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
  std::string file{};       ///< Its path, or "-".
  std::string arguments{};  ///< Options of Megatron-LM, instead of a file.
  std::string format{};     ///< As in launch::Request.
  std::optional<std::int64_t> devices{};
  std::vector<yaml::Override> sets{};  ///< Of a study; those of strategy and model are heeded.
};

/// \return as launch::import_launch; kIo if the file cannot be read.
Result<launch::Imported> import_given(const ImportOptions& options);

/// Puts the strategy in its place in `files`, and the model, where none is given; where one is, the
/// length of its sequences alone.
/// \return kInvalidInput if the model lacks something.
Status add_to_study(const launch::Imported& imported, study::StudyFiles& files,
                    std::vector<yaml::Override>& overrides);

/// What was taken, what has no meaning, what is left out: on stderr.
void note_report(const launch::Imported& imported);

}  // namespace foreshard::cli
