/// \file
/// How tables of measured training steps write things down: which column holds what, and which
/// words stand for which framework, model and schedule of the catalogue. It is data
/// (configs/tables/*.yaml), so that a table with other columns needs a file and no code.
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

namespace foreshard::accuracy {

/// How a framework cuts layers into pipeline stages where it does not cut them equally.
enum class StageCut : std::uint8_t {
  kEqual,
  kByWeights,  ///< By numbers of weights, the head's among them (nanotron).
};
const yaml::Names<StageCut>& yaml_names(const StageCut*);

/// The framework of rows whose columns contain all the words given here, in any case.
struct FrameworkWords {
  std::string framework;  ///< In the column of that name; empty: any.
  std::string source;     ///< In the column of the source; empty: any.
  std::string notes;      ///< In the notes, in the same case; empty: any.
  yaml::Ref<Framework> take;
  std::int64_t zero_stage = 0;  ///< ZeRO stage where the row states none.
  /// Words of the tokenizer in the framework's scripts, where the row states none; empty: as the
  /// model's family.
  std::optional<std::int64_t> vocabulary;
  StageCut stages = StageCut::kEqual;
  /// Whether micro-batches of models with experts have one sequence where the row states none.
  bool one_sequence_with_experts = false;
  bool is_assumed = false;  ///< No framework is known: what most frameworks do.
  bool only_gpt = false;    ///< Models of these rows are like GPT-2, whatever their names.
};
const yaml::Table<FrameworkWords>& yaml_table(const FrameworkWords*);

/// The architecture that the name of a model implies, without its sizes.
struct Family {
  std::string word;  ///< In the name of the model, in any case.
  Norm norm = Norm::kRmsNorm;
  Activation activation = Activation::kSwiglu;
  Positions positions = Positions::kRotary;
  bool bias = false, qkv_bias = false, tied_embeddings = false, dropout = false;
  bool attention_bias = false, mlp_bias = false, router_bias = false;
  bool sinks = false, clamped_activation = false;
  std::int64_t vocabulary = 1;  ///< Where the row states none.
  std::string source;
};
const yaml::Table<Family>& yaml_table(const Family*);

/// A model of the catalogue whose layers no columns can describe.
struct HybridWords {
  std::string name;  ///< The row's begins with it, case and other than letters and digits aside.
  yaml::Ref<Model> take;
};
const yaml::Table<HybridWords>& yaml_table(const HybridWords*);

/// A pipeline schedule of rows.
struct ScheduleWords {
  std::string word;      ///< In any case.
  std::string schedule;  ///< A name of strategies/schedule.
  bool is_split = true;  ///< Backward passes run in two parts.
  /// The step is predicted with the optimizer steps of all stages behind a common gradient norm,
  /// which the framework of these rows validates afterwards instead.
  bool is_synchronous = true;
};
const yaml::Table<ScheduleWords>& yaml_table(const ScheduleWords*);

struct RowFormat {
  std::map<std::string, std::string> columns;  ///< What we call a column -> its name in tables.
  std::vector<std::string> required;           ///< What we call the columns that a table must have.
  std::vector<FrameworkWords> frameworks;      ///< The first line that fits counts.
  std::vector<Family> families;                ///< The first line that fits counts.
  std::string gated_family;                    ///< Word of the family of unknown gated models.
  std::string plain_family;                    ///< Word of the family of other unknown models.
  std::vector<HybridWords> hybrids;
  std::vector<ScheduleWords> schedules;

  /// The name that tables give to a column of ours.
  const std::string& column(const std::string& ours) const;
  /// \pre the last line fits all rows.
  const FrameworkWords& framework_named(std::string_view framework, std::string_view source,
                                        std::string_view notes) const;
  /// The family that the name of a model tells; null if it tells none.
  const Family* family_named(std::string_view model_name) const;
  const Family& family_called(std::string_view word) const;
  const HybridWords* hybrid_named(std::string_view model_name) const;
  const ScheduleWords* schedule_named(std::string_view word) const;
};
/// Catalogue folder: tables.
const yaml::Table<RowFormat>& yaml_table(const RowFormat*);

/// The format of a table: the first of the catalogue's, by name, that knows the table's columns of
/// models and metrics; null if none does.
/// \return errors of the catalogue.
Result<std::shared_ptr<const RowFormat>> format_of(
    const CsvTable& table, const std::vector<std::filesystem::path>& catalogue);

/// Layers of each stage as the framework cuts them.
/// \pre the words' `stages` is not kEqual.
std::vector<std::int64_t> layers_by_weights(const Model& model, std::int64_t stages);

}  // namespace foreshard::accuracy
