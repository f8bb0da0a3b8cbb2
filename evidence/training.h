/// \file
/// Predicts rows of measured training steps: each row becomes a study (setting.h), which runs as
/// `foreshard simulate` runs it, and its prediction is compared with the measured value. score()
/// (accuracy.cc) runs the jobs; regret.cc and parts.cc use study_of() and study_text().
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/setting.h"
#include "evidence/training_row.h"

#include "sim/study/study.h"
#include "validate/tables/outcome.h"
#include "validate/tables/table.h"

namespace foreshard::accuracy {

/// The study of a row, as text that `simulate` reads.
/// \param setting  the row's cluster, model and strategy, as setting_of() returns them.
/// \return Errors of the catalogue, and of a cluster that cannot be built (cluster_for).
Result<std::string> study_text(const TrainingRow& row, const Setting& setting,
                               yaml::Loader& loader);

/// The same, with the setting derived from the row.
/// \return Also kUnsupported for a row with a fault, or one that setting_of() refuses.
Result<std::string> study_text(const TrainingRow& row, const RowFormat& format,
                               const std::vector<std::filesystem::path>& catalogue);

/// Loads a study from its text.
/// \param name          stands for a file in messages.
/// \param sizes_matter  as in study::StudyFiles.
/// \return If the study cannot be loaded: kUnsupported (kInfeasible stays), with the cause in one
///     line.
Result<study::LoadedStudy> study_of(const std::string& name, const std::string& text,
                                    const Context& context, bool sizes_matter = true);

/// Predicts the row and compares the prediction with the measured value. A measured step did fit in
/// memory: if the prediction says that it does not, the row stays kOk and `reason` explains. The
/// metric peak_memory (unit GiB) is compared with the peak of the fullest device, or of rank 0 if
/// the notes say "of the logging rank". Metrics of parts.h (unit ms) are compared with the time of
/// a part of a step.
Outcome evaluate(const TrainingRow& row, const RowFormat& format, const Context& context);

/// One job for each row of a table of training steps.
/// \return Errors of read_training().
Result<Jobs> training_jobs(const Table& table, const std::shared_ptr<const RowFormat>& format,
                           const Context& context);

}  // namespace foreshard::accuracy
