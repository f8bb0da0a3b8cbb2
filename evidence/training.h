/// \file
/// Predicts rows of measured training steps: each row becomes a study (setting.h), which runs as
/// `foreshard simulate` runs it, and its prediction is compared with the measured value. score()
/// (accuracy.cc) runs the jobs; It also converts what sources print to the time of a step, and
/// predicts rows that measure only a part of one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "evidence/row_format.h"
#include "evidence/setting.h"

#include "sim/simulate/prediction.h"
#include "sim/study/study.h"
#include "strategies/graph/model.h"
#include "topology/cluster_config.h"
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

/// Sets what a prediction of a step says of its time.
void set_time(Outcome& outcome, const sim::Prediction& prediction);

/// Predicts the row and compares the prediction with the measured value. A measured step did fit in
/// memory: if the prediction says that it does not, the row stays kOk and `reason` explains. The
/// metric peak_memory (unit GiB) is compared with the peak of the fullest device, or of rank 0 if
/// the notes say "of the logging rank"; with "in use", a number of the device, the
/// reserve of driver and communicators counts, too. Metrics of a PartOfStep (unit ms) are compared
/// with the time of a part of a step.
Outcome evaluate(const TrainingRow& row, const RowFormat& format, const Context& context);

/// One job for each row of a table of training steps.
/// \return Errors of read_training().
Result<Jobs> training_jobs(const Table& table, const std::shared_ptr<const RowFormat>& format,
                           const Context& context);

/// The FLOPs that a source counts for a step.
enum class FlopsConvention : std::uint8_t {
  kModel,       ///< One forward and backward pass; attention scores in full.
  kHardware,    ///< kModel plus one more forward pass of the layers, for recomputation.
  kCausalHalf,  ///< kModel with attention scores halved for the causal mask.
};

/// One line of the table of conventions.
struct Convention {
  std::string_view metric;    ///< Metric of the rows to which the line applies.
  std::string_view source;    ///< Part of the name of their source; empty: any source.
  FlopsConvention flops;      ///< The FLOPs that such rows count.
  std::string_view citation;  ///< Document that states the convention.
};
/// The first line that applies to the row; nullptr for a metric that does not count FLOPs.
const Convention* convention_of(const TrainingRow& row);

/// FLOPs of one step of `samples` sequences. For GPT models, with batch B, sequence s, layers l,
/// hidden size h and vocabulary V, kHardware is 96 B s l h^2 (1 + s / 6h + V / 16lh) and kModel is
/// 72 B s l h^2 (1 + s / 6h + V / 12lh).
Flops step_flops(const Model& model, double samples, FlopsConvention convention);

/// The measured time of a step, which the row states directly or as a rate:
///
///     tokens/s(/GPU):  B s / rate       samples/s(/GPU):  B / rate
///     TFLOP/s/GPU:     flops / (rate GPUs)
///     MFU:             flops / (percent / 100 x peak GPUs), with the peak that the unit names
///
/// \pre The row states gbs.
/// \return kUnsupported for a metric that is not of a whole step, and for an unknown unit.
Result<Seconds> measured_step(const TrainingRow& row, const Model& model, std::int64_t gpus);

/// The step time after `derived step_time=` in the row's notes, in seconds, against which tests
/// check the conversion; nothing if the notes have none.
std::optional<Seconds> noted_step(const TrainingRow& row);

/// One pass of one micro-batch through one layer, or through the layers of a pipeline stage, by
/// itself.
enum class PartOfStep : std::uint8_t {
  kForward,
  kBackward,
  kInputGradients,  ///< First part of a split backward pass.
  kWeightGradients  ///< Second part of a split backward pass.
};

/// The part that a metric such as "layer_forward" or "stage_T_W" measures; nothing for metrics of
/// anything else.
std::optional<PartOfStep> part_named(std::string_view metric);

/// Whether the row measures the expert branch of a layer only, without attention, norm and
/// residual.
bool is_of_experts_alone(const TrainingRow& row);

/// Whether the measurement was too short for the devices to get as warm as in training (notes such
/// as "5 warm-up + 20 measured iterations").
bool is_short_run(const TrainingRow& row);
/// The cluster, with devices whose clocks do not fall under load.
ClusterConfig at_full_clocks(ClusterConfig config);

/// The part's time, with its interval. All devices run the same pass at once. Two programs are
/// simulated, the preceding pass alone and both passes; `step` is the difference, so that the host
/// has launched ahead as in training. The breakdown covers both passes.
/// \pre part_named(row.metric) == part
/// \return kUnsupported for a strategy that the model forbids, and for a pass that is not one block
///     of tasks; errors of the study and of the simulation.
Result<sim::Prediction> predict_part(const TrainingRow& row, PartOfStep part,
                                     const Setting& setting, const Context& context);

}  // namespace foreshard::accuracy
