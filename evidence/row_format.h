/// \file
/// The format of a table of measured training steps: which column holds what, and which words stand
/// for which framework, model and schedule of the catalogue. Formats are data
/// (configs/tables/*.yaml), so that a table with other columns needs a file and no code.
/// format_of() finds a table's format for accuracy.cc; read_training() reads rows by it, and
/// setting.h maps their words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "base/yaml/loader.h"

#include "strategies/graph/model.h"
#include "strategies/parallelism/framework.h"
#include "topology/device_type.h"

namespace foreshard::accuracy {

/// How a framework cuts layers into pipeline stages where it does not cut them equally.
enum class StageCut : std::uint8_t {
  kEqual,
  kByWeights,  ///< Equal numbers of weights, with the output head's (nanotron).
};
const yaml::Names<StageCut>& yaml_names(const StageCut*);

/// The framework of rows whose columns contain all the words given here.
struct FrameworkWords {
  std::string framework;  ///< Part of the framework's column, case-insensitive; empty: any.
  std::string source;     ///< Part of the source's column, case-sensitive; empty: any.
  std::string notes;      ///< Part of the notes, case-sensitive; empty: any.
  yaml::Ref<Framework> take;
  std::int64_t zero_stage = 0;  ///< ZeRO stage, if the row states none.
  /// Vocabulary of the tokenizer in the framework's scripts, if the row states none; empty: the
  /// model family's.
  std::optional<std::int64_t> vocabulary;
  StageCut stages = StageCut::kEqual;
  /// Whether a model with experts has micro-batches of one sequence, if the row states no size.
  bool one_sequence_with_experts = false;
  bool is_assumed = false;  ///< The row's framework is unknown; `take` does what most of them do.
  /// Parameters, gradients and optimizer states have the type of the training precision.
  bool narrow_states = false;
  bool only_gpt = false;  ///< Models of these rows are like GPT-2, whatever their names.
};
const yaml::Table<FrameworkWords>& yaml_table(const FrameworkWords*);

/// The device of rows whose columns contain all the words given here, where the device's name alone
/// would stand for another variant.
struct DeviceWords {
  std::string gpu;     ///< Part of the device's column, case-sensitive.
  std::string source;  ///< As in FrameworkWords.
  std::string notes;   ///< As in FrameworkWords.
  yaml::Ref<DeviceType> take;
};
const yaml::Table<DeviceWords>& yaml_table(const DeviceWords*);

/// The architecture that the name of a model implies, without its sizes.
struct Family {
  std::string word;  ///< Part of the model's name, case-insensitive.
  Norm norm = Norm::kRmsNorm;
  Activation activation = Activation::kSwiglu;
  Positions positions = Positions::kRotary;
  bool bias = false, qkv_bias = false, tied_embeddings = false, dropout = false;
  bool attention_bias = false, mlp_bias = false, router_bias = false;
  bool sinks = false, clamped_activation = false;
  std::int64_t vocabulary = 1;  ///< Vocabulary, if neither the row nor its framework states one.
  std::string source;
};
const yaml::Table<Family>& yaml_table(const Family*);

/// A model of the catalogue whose layers columns cannot describe.
struct HybridWords {
  /// Beginning of the model's name in lower case, without characters other than letters and digits.
  std::string name;
  yaml::Ref<Model> take;
};
const yaml::Table<HybridWords>& yaml_table(const HybridWords*);

/// A word of rows for a pipeline schedule.
struct ScheduleWords {
  std::string word;      ///< The word in lower case; rows may write it in any case.
  std::string schedule;  ///< Name in strategies/schedule.
  bool is_split = true;  ///< Backward passes run in two parts.
  /// The prediction makes the optimizer steps of all stages wait for a common gradient norm,
  /// whereas the framework of these rows validates the norm afterwards. Such rows count as assumed.
  bool is_synchronous = true;
};
const yaml::Table<ScheduleWords>& yaml_table(const ScheduleWords*);

/// A file of configs/tables.
struct RowFormat {
  std::map<std::string, std::string> columns;  ///< our name for a column -> its name in tables
  std::vector<std::string> required;           ///< Our names of the columns that a table must have.
  std::vector<FrameworkWords> frameworks;      ///< The first entry that fits a row counts.
  std::vector<DeviceWords> devices;            ///< The first entry that fits a row counts.
  std::vector<Family> families;                ///< The first entry that fits a model counts.
  std::string gated_family;                    ///< `word` of the family of unknown gated models.
  std::string plain_family;                    ///< `word` of the family of other unknown models.
  std::vector<HybridWords> hybrids;
  std::vector<ScheduleWords> schedules;

  /// The name in tables of the column that we call `ours`; empty if the format has no such column.
  const std::string& column(const std::string& ours) const;
  /// \pre The last entry of `frameworks` fits all rows.
  const FrameworkWords& framework_named(std::string_view framework, std::string_view source,
                                        std::string_view notes) const;
  /// The entry for a row's device; null if there is none.
  const DeviceWords* device_named(std::string_view gpu, std::string_view source,
                                  std::string_view notes) const;
  /// The family that the name of a model implies; null if there is none.
  const Family* family_named(std::string_view model_name) const;
  /// The family whose `word` is this.
  /// \pre There is one.
  const Family& family_called(std::string_view word) const;
  /// The entry for the model of this name, or for the schedule of this word; null if there is none.
  const HybridWords* hybrid_named(std::string_view model_name) const;
  const ScheduleWords* schedule_named(std::string_view word) const;
};
/// Catalogue folder: tables.
const yaml::Table<RowFormat>& yaml_table(const RowFormat*);

/// The format of a table: the first format of the catalogue, sorted by name, whose columns for the
/// model and the metric the table has; null if there is none.
/// \return Errors of the catalogue.
Result<std::shared_ptr<const RowFormat>> format_of(
    const CsvTable& table, const std::vector<std::filesystem::path>& catalogue);

/// stage -> number of layers, as cut by StageCut::kByWeights.
std::vector<std::int64_t> layers_by_weights(const Model& model, std::int64_t stages);

/// Reads the rows of a table of measured training steps, without interpreting them. An empty cell
/// means that the source does not state the value. training.cc reads a table with read_training();
/// setting.cc interprets the rows.
///
/// The cells of one row. Integers and numbers are empty if the source does not state them. Cells
/// that sources fill with words ("1 within groups of 8") stay text.
struct TrainingRow {
  std::size_t line = 0;
  std::string id;
  std::string source;
  std::string framework;
  std::string gpu;
  std::string model_name;
  std::optional<double> gpu_mem_gb, internode_gbps_per_gpu;
  std::optional<double> parameters;  ///< Billions of parameters.
  std::optional<std::int64_t> num_gpus, gpus_per_node;
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, ffn, vocab, seq;
  std::optional<std::int64_t> experts, topk;
  std::optional<std::int64_t> tp, pp, vpp, dp, ep, mbs, gbs;
  std::string cp, zero_stage, recompute, seq_parallel, precision;
  std::string metric, unit, notes;
  double value = 0;
  std::string fault{};  ///< The first bad cell, with its line and column; else empty.
};

/// The rows of a table. A row has a fault if a cell with a number has other text, a number is not
/// positive, or a cell without which the row cannot be scored (id, metric, value) is empty.
/// \param name  the table's name in messages.
/// \return kInvalidInput with "name:1:" for a missing column.
Result<std::vector<TrainingRow>> read_training(const CsvTable& table, const RowFormat& format,
                                               std::string_view name);

}  // namespace foreshard::accuracy
