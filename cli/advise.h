/// \file
/// Advice as commands ask for it: with progress, Ctrl-C, and the memory of this machine as limit.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "cli/command.h"
#include "cli/options.h"

#include "sim/advise/advise.h"

namespace foreshard::cli {

/// \param top  changes to list, and as many of hardware.
/// \param threads  simulations at the same time.
/// \return errors of advise::advise.
Result<advise::Advice> advised(const study::LoadedStudy& study, const StudyOptions& given,
                               const Environment& environment, std::int64_t top = 3,
                               std::int64_t threads = 2);

}  // namespace foreshard::cli
