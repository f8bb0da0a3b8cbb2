/// \file
/// Results that commands read: from files that this program wrote, or of a study that is simulated
/// on the spot.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace foreshard::cli {

/// Whether `name` stands for a result: stdin, or a file that is named as one (.json, .fsr, .gz).
/// Anything else is a study.
bool is_result(const std::string& name);

/// The JSON of the result, uncompressed; of a study, its prediction with all that pictures need.
/// \param sets  "KEY=VALUE", which change the study.
/// \return errors of reading the file, or of loading and simulating the study; kInvalidInput if a
///     file is damaged or larger than limits::kResult.
Result<std::string> given_result(const std::string& name, const std::vector<std::string>& sets,
                                 const Environment& environment);

}  // namespace foreshard::cli
