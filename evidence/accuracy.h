/// \file
/// Scores the simulator on tables of measurements: every row is compared with its prediction, and
/// the errors are summarised per file, per source, per tier, per kernel and over all rows.
/// `foreshard accuracy` (cli/accuracy.cc) calls score() and prints the Report with report.h and
/// markdown.h.
///
///     auto report = score({"measurements.csv"}, {.catalogue = {"configs"}});
///     report->overall.time.mape_pct
///
/// The header of a table tells its kind:
///
/// - training: steps of whole training runs (training_row.h), simulated with the fluid engine;
/// - collectives: single operations as nccl-tests measures them, predicted on idle links;
/// - kernels, in one format per kind of source (kernel_rows.h), predicted by the compute model.
///
/// A bad cell, or an empty cell that its row cannot do without, costs only that row: it gets the
/// status kUnsupported and a reason that names the cell.
///
/// Nothing is tuned per row, machine or source: one mapping from columns to the catalogue serves
/// all (setting.h, device_names.h).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/regret.h"

#include "strategies/comm/parameters.h"
#include "topology/cluster_config.h"
#include "validate/tables/outcome.h"

namespace foreshard::accuracy {

struct Options {
  std::vector<std::filesystem::path> catalogue{};
  /// Parameters of the communication library. Empty: the catalogue's `nccl`.
  std::optional<comm::Parameters> communication{};
  /// The cluster on which collectives were measured. Empty: usual machines of the rows' devices.
  std::optional<ClusterConfig> machine{};
  /// The operation in output of nccl-tests, used only if the output does not say it. Empty: the
  /// file's name decides.
  std::string operation{};
  /// The `id` of the only row to predict; empty: all rows.
  std::string row{};
  bool regret = false;    ///< Also search each group of measured strategies (regret.h).
  int threads = 1;        ///< Number of threads; the report does not depend on it.
  bool progress = false;  ///< Show progress on stderr if it is a terminal (base/progress.h).
};

/// Counts and errors of a group of rows.
struct Summary {
  std::int64_t rows = 0;
  std::int64_t ok = 0;
  std::int64_t assumed = 0;  ///< Rows of `ok` for which something unstated was assumed.
  std::int64_t unsupported = 0;
  std::int64_t infeasible = 0;
  std::int64_t excluded = 0;
  Statistics time;    ///< Errors of times, over the rows in `ok`.
  Statistics memory;  ///< Errors of peak memory, over the rows in `ok`.
};

struct Report {
  std::vector<Outcome> rows;  ///< Outcomes in the order of the tables and their rows.
  Summary overall;
  std::map<std::string, Summary> files;     ///< file name -> its summary.
  std::map<std::string, Summary> families;  ///< source -> its summary.
  std::map<std::string, Summary> tiers;     ///< tier -> its summary; empty without TIERS.csv.
  /// "operation on device" -> its summary; empty without kernels.
  std::map<std::string, Summary> kernels;
  std::optional<Regret> regret{};  ///< Present if Options::regret asked for it.

  /// The summary that --max-error is compared with: tier "core" if any of its rows has a
  /// prediction, else all rows.
  const Summary& score() const;
};

Summary summary_of(const std::vector<const Outcome*>& rows);
/// The report on `rows` with all summaries; `regret` stays empty.
Report report_of(std::vector<Outcome> rows);

/// Predicts every row of the tables and reports the errors. A TIERS.csv beside a table gives its
/// rows their tiers; a machines.csv beside a table of collectives gives the network of its
/// machines.
/// \return kIo for a file that cannot be read; kInvalidInput with "file:line:" for a file that is
///     not CSV or is of no known kind, and if no table has the row `options.row`.
Result<Report> score(const std::vector<std::filesystem::path>& tables, const Options& options);

/// The text of the study with which row `options.row` of a table of training steps is predicted.
/// \return The errors of score(); kUnsupported, with the reason, for a row that cannot be a study.
Result<std::string> study_of_row(const std::vector<std::filesystem::path>& tables,
                                 const Options& options);

}  // namespace foreshard::accuracy
