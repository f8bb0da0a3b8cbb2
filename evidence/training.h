/// \file
/// A measured training step beside its prediction: the row becomes a study, which runs as
/// `simulate` runs it.
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

/// The row, whose setting this is, as the text of a study that `simulate` reads.
/// \return errors of the catalogue, and of a cluster that cannot be built (cluster_for).
Result<std::string> study_text(const TrainingRow& row, const Setting& setting,
                               yaml::Loader& loader);

/// The study of a row, as `simulate` reads it.
/// \return kUnsupported for what a study cannot say, as setting_of.
Result<std::string> study_text(const TrainingRow& row, const RowFormat& format,
                               const std::vector<std::filesystem::path>& catalogue);

/// A study from its text.
/// \param name          stands for a file in messages.
/// \param sizes_matter  as in study::StudyFiles.
/// \return kUnsupported, in one line, where the study cannot be loaded.
Result<study::LoadedStudy> study_of(const std::string& name, const std::string& text,
                                    const Context& context, bool sizes_matter = true);

/// The row beside its prediction. A measured step did fit in memory: where the prediction says that
/// it does not, the row stays kOk and `reason` explains. `metric` peak_memory compares the peak of
/// the fullest device (unit GiB), or of rank 0, which logs, where notes say so; metrics of parts.h
/// compare a part of a step (unit ms).
Outcome evaluate(const TrainingRow& row, const RowFormat& format, const Context& context);

/// A job for each row of a table of training steps.
/// \return errors of read_training.
Result<Jobs> training_jobs(const Table& table, std::shared_ptr<const RowFormat> format,
                           const Context& context);

}  // namespace foreshard::accuracy
