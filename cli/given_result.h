/// \file
/// Results that commands read: from files that this program wrote, or of a study that is simulated
/// on the spot.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

#include "sim/study/study.h"

namespace foreshard::cli {

/// Whether `name` stands for a result: a name that ends in .json, .fsr or .gz, a file that gzip
/// compressed, or "-" where stdin holds either. Anything else is a study.
bool is_result(const std::string& name);

/// The JSON of a result in the file at `name` ("-": stdin), uncompressed.
/// \return errors of reading it; kInvalidInput if it is damaged or larger than limits::kResult.
Result<std::string> read_result(const std::string& name);

/// The JSON of the study's prediction, with all that pictures need.
Result<std::string> simulated_result(const study::LoadedStudy& study);

/// read_result() or simulated_result(), by is_result().
/// \param sets  "KEY=VALUE", which change the study.
Result<std::string> given_result(const std::string& name, const std::vector<std::string>& sets,
                                 const Environment& environment);

}  // namespace foreshard::cli
