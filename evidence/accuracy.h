/// \file
/// Scores the simulator on tables of measurements: each row beside its prediction, and
/// summaries per file, per source, per tier and over all.
///
///     auto report = score({"measurements.csv"}, {.catalogue = {"configs"}});
///     report->overall.time.mape_pct
///
/// The kind of a table is known from its header:
///
/// - training: steps of whole training runs (training_row.h), simulated with the fluid engine;
/// - collectives: single operations as nccl-tests measures them, on idle links;
/// - kernels, in as many formats as sources have (kernel_rows.h), beside the compute model's time.
///
/// An empty or bad cell costs its row: status kUnsupported, and the reason names the cell.
///
/// Nothing is tuned per row, machine or source: one mapping from columns to the catalogue serves
/// all (setting.h, catalogue_names.h).
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
  /// Of the communication library. Empty: those of the catalogue's `nccl`.
  std::optional<comm::Parameters> communication{};
  /// What collectives were measured on. Empty: usual machines of the rows' devices.
  std::optional<ClusterConfig> machine{};
  /// Of what nccl-tests printed, where neither the text nor the file's name tells it.
  std::string operation{};
  /// The `id` of the row that alone is predicted; empty: all rows.
  std::string row{};
  bool regret = false;    ///< Also search each group of measured strategies (regret.h).
  int threads = 1;        ///< Rows at a time; the report does not depend on it.
  bool progress = false;  ///< A line on stderr where that is a terminal (base/progress.h).
};

struct Summary {
  std::int64_t rows = 0;
  std::int64_t ok = 0;
  std::int64_t assumed = 0;  ///< Of `ok`: something unstated was assumed.
  std::int64_t unsupported = 0;
  std::int64_t infeasible = 0;
  std::int64_t excluded = 0;
  Statistics time;
  Statistics memory;
};

struct Report {
  std::vector<Outcome> rows;  ///< In the order of the tables.
  Summary overall;
  std::map<std::string, Summary> files;
  std::map<std::string, Summary> families;
  std::map<std::string, Summary> tiers;    ///< Empty without TIERS.csv.
  std::map<std::string, Summary> kernels;  ///< By operation and device; empty without kernels.
  std::optional<Regret> regret{};          ///< Of Options::regret.

  /// What a limit is held against: tier "core" if rows have tiers and some are core, else all.
  const Summary& score() const;
};

Summary summary_of(const std::vector<const Outcome*>& rows);
/// With its summaries.
Report report_of(std::vector<Outcome> rows);

/// \return kIo for a file that cannot be read, kInvalidInput with "file:line:" for one that is no
///     CSV or none of the kinds. A TIERS.csv beside a table of training steps gives its rows their
///     tiers; a machines.csv beside a table of collectives the network of its machines.
Result<Report> score(const std::vector<std::filesystem::path>& tables, const Options& options);

/// The row `options.row` of a table of training steps, as the study by which it is predicted.
/// \return as score; kUnsupported for a row that cannot be a study, with the reason.
Result<std::string> study_of_row(const std::vector<std::filesystem::path>& tables,
                                 const Options& options);

}  // namespace foreshard::accuracy
