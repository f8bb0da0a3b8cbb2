/// \file
/// Scores the simulator on tables of measurements: every row is compared with its prediction, and
/// the errors are summarised per file, per source, per tier, per kernel and over all rows.
/// `foreshard accuracy` (cli/accuracy.cc) calls score() and prints the Report with report.h and
/// its to_markdown().
///
///     auto report = score({"measurements.csv"}, {.catalogue = {"configs"}});
///     report->overall.time.mape_pct
///
/// The header of a table tells its kind:
///
/// - training: steps of whole training runs (row_format.h), simulated with the fluid engine;
/// - steps: a study's file and the seconds that its step took (steps.h);
/// - collectives: single operations as nccl-tests measures them, predicted on idle links;
/// - kernels, in one format per kind of source (kernel_rows.h), predicted by the compute model.
///
/// A bad cell, or an empty cell that its row cannot do without, costs only that row: it gets the
/// status kUnsupported and a reason that names the cell.
///
/// Nothing is tuned per row, machine or source: one mapping from columns to the catalogue serves
/// all (setting.h, device_names.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/comm/parameters.h"
#include "topology/cluster_config.h"
#include "validate/tables/outcome.h"

namespace foreshard::accuracy {

struct Context;

inline constexpr std::size_t kFewestStrategies = 5;

/// Measures the search: how much slower its choice was measured than the fastest strategy that
/// somebody measured, and how well simulation ranks the measured strategies.
///
/// A **group** is the rows of one table that were measured with the same model, framework, batch,
/// sequence and precision on the same number of devices of the same machine, with at least
/// kFewestStrategies different strategies. Several rows of one strategy count as one, with the mean
/// of their times.
///
///     regret = measured time of the strategy that the search takes / least measured time - 1
///
/// The search is `search::search_among` on the group's strategies: it ranks them by estimate, drops
/// them by lower bound, and simulates until the choice is certified. Every measured strategy did
/// run, so memory rules none out.
///
/// One strategy of a group.
struct GroupMember {
  std::string id;     ///< The id of its first row.
  Seconds measured;   ///< Mean of its rows.
  Seconds simulated;  ///< Prediction of its first row.
};

/// This is the result of one group.
struct RegretGroup {
  std::string file;
  std::string model;
  std::string device;
  std::int64_t devices = 0;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::string precision;
  std::int64_t strategies = 0;  ///< Number of different strategies.
  std::vector<GroupMember> members{};
  std::int64_t simulated = 0;  ///< Strategies that were simulated to certify the choice.
  bool certified = false;
  std::string chosen;     ///< Id of the first row with the strategy that the search takes.
  std::string fastest;    ///< Id of the first row with the strategy that was measured the fastest.
  std::string simulates;  ///< Id of the first row with the strategy of least simulated time.
  double regret_pct = 0;
  /// Kendall's tau of measured against simulated times of the strategies (statistics.h); empty if
  /// all measured or all simulated times are equal.
  std::optional<double> tau{};
  double slower_pct = 0;  ///< How much longer `chosen` takes than `simulates`, both simulated.
};

/// The mean and the worst regret over several groups, each with the same weight.
struct MeanRegret {
  std::int64_t groups = 0;
  double mean_pct = 0;
  double worst_pct = 0;
  std::optional<double> tau{};  ///< Mean over the groups that have a tau.
};

struct Regret {
  std::vector<RegretGroup> groups;          ///< Groups, sorted by their first rows.
  std::map<std::string, MeanRegret> files;  ///< file -> mean over its groups, if it has any.
  MeanRegret overall;                       ///< Mean over all groups.
};

/// The regret over the predicted rows of training steps. Strategies that offload to the host are
/// left out.
/// \param threads  number of threads, each of which searches one group at a time; the result does
///     not depend on it.
/// \return Errors of the study and of the search; kInfeasible if no strategy of a group can be
///     routed.
Result<Regret> regret_of(const std::vector<Outcome>& rows, const Context& context, int threads);

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
  bool regret = false;    ///< Also search each group of measured strategies (Regret).
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

/// The measured and predicted training steps of the report, for intervals of steps like them.
study::MeasuredSteps steps_of(const Report& report);

/// The text of the study with which row `options.row` of a table of training steps is predicted.
/// \return The errors of score(); kUnsupported, with the reason, for a row that cannot be a study.
Result<std::string> study_of_row(const std::vector<std::filesystem::path>& tables,
                                 const Options& options);

}  // namespace foreshard::accuracy
