#include "evidence/accuracy.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/limits.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/threads.h"
#include "base/yaml/loader.h"
#include "evidence/row_format.h"
#include "evidence/steps.h"
#include "evidence/training.h"

#include "sim/search/search.h"
#include "sim/study/study.h"
#include "validate/tables/cells.h"
#include "validate/tables/collective_rows.h"
#include "validate/tables/device_names.h"
#include "validate/tables/table.h"

namespace foreshard::accuracy {
namespace {

Result<Table> read_table(const std::filesystem::path& path, std::string_view operation = {}) {
  FORESHARD_ASSIGN(auto cells, read_measured_table(path, limits::kTable, operation));
  return Table{path, std::move(cells)};
}

// Removes all rows but the ones with this id; removes none if the id is empty.
void keep_row(Table& table, const std::string& id) {
  if (id.empty()) return;
  const std::string name = table.path.string();
  std::erase_if(table.cells.rows,
                [&](const CsvTable::Row& row) { return Cells(table.cells, row, name).id() != id; });
}

Error no_such_row(const std::string& id) {
  return {Error::Code::kInvalidInput,
          fmt::format("--row {}: no table given here has a row with this id", id)};
}

Result<Jobs> jobs_of(const Table& table, const Context& context) {
  FORESHARD_ASSIGN(const auto format, format_of(table.cells, context.catalogue));
  if (format) return training_jobs(table, format, context);
  if (has_columns(table.cells, step_columns())) return step_jobs(table, context);
  if (has_columns(table.cells, collective_columns())) return collective_jobs(table, context);
  std::vector<std::string> known{
      "training steps (configs/tables)",
      fmt::format("steps of studies ({})", fmt::join(step_columns(), ", ")),
      fmt::format("collectives ({})", fmt::join(collective_columns(), ", "))};
  for (const KernelFormat& kind : context.kernel_formats) {
    if (has_columns(table.cells, kind.columns)) return kernel_jobs(table, context, kind);
    known.push_back(fmt::format("{} ({})", kind.name, fmt::join(kind.columns, ", ")));
  }
  return Error{
      Error::Code::kInvalidInput,
      fmt::format(
          "{}:1: no kind of table has this header; the kinds, by some of their columns, are {}",
          table.path.string(), join(known))};
}

Result<std::map<std::string, std::string>> tiers_beside(const std::filesystem::path& table) {
  std::map<std::string, std::string> tiers;
  const auto path = table.parent_path() / "TIERS.csv";
  if (!std::filesystem::exists(path)) return tiers;
  FORESHARD_ASSIGN(const auto read, read_table(path));
  const auto id = read.cells.column("id");
  const auto tier = read.cells.column("tier");
  if (!id || !tier)
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}:1: the header lacks 'id' or 'tier'", path.string())};
  for (const auto& row : read.cells.rows) tiers[row.fields[*id]] = row.fields[*tier];
  return tiers;
}

// Whether the file says more about the rows of tables beside it. Such files are skipped, because
// `DIRECTORY/*.csv` names them too.
bool describes_others(const std::filesystem::path& path) {
  return path.filename() == "TIERS.csv" || path.filename() == "machines.csv";
}

struct Task {
  Job job;
  std::size_t offset = 0;  ///< Index in the report of the first outcome of the job's table.
};

void run_all(const std::vector<Task>& tasks, std::vector<Outcome>& outcomes,
             const Options& options) {
  std::atomic<std::size_t> next{0};
  std::optional<Progress> progress;
  if (options.progress)
    progress.emplace("predicting rows", static_cast<std::int64_t>(outcomes.size()));
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      const Task& task = tasks[i];
      auto results = task.job.run();
      for (std::size_t k = 0; k < results.size(); ++k)
        outcomes[task.offset + task.job.places[k]] = std::move(results[k]);
      if (progress) progress->tick(static_cast<std::int64_t>(results.size()));
    }
  };
  const auto most = std::max<std::int64_t>(std::ssize(tasks), 1);
  in_threads(std::min<std::int64_t>(options.threads, most), [&](std::int64_t) { work(); });
}

}  // namespace

namespace {

// Sets the intervals that the steps of other sources than the row's own give.
void set_blind(Outcome& row, const Context& context) {
  const auto& groups = context.measured_steps.groups;
  const bool others = std::ranges::any_of(
      groups, [&](const study::MeasuredStepGroup& group) { return group.source != row.file; });
  if (!row.kind || !row.predicted || !row.widened_low || !others) return;
  const auto ends =
      study::ends_of(study::errors_of(*row.kind, groups, context.errors.step_weights, row.file),
                     {*row.widened_low, *row.widened_high}, context.errors);
  row.blind_low = *row.predicted * ends.low;
  row.blind_high = *row.predicted * ends.high;
}

}  // namespace

Summary summary_of(const std::vector<const Outcome*>& rows) {
  Summary result;
  std::vector<Pair> time;
  std::vector<Pair> memory;
  for (const Outcome* one : rows) {
    const Outcome& row = *one;
    ++result.rows;
    result.unsupported += row.status == RowStatus::kUnsupported;
    result.infeasible += row.status == RowStatus::kInfeasible;
    result.excluded += row.status == RowStatus::kExcluded;
    if (row.status != RowStatus::kOk) continue;
    ++result.ok;
    result.assumed += !row.assumed.empty();
    if (const auto pair = row.pair())
      (row.quantity == Quantity::kMemory ? memory : time).push_back(*pair);
  }
  result.time = statistics_of(time);
  result.memory = statistics_of(memory);
  return result;
}

Report report_of(std::vector<Outcome> rows) {
  using Groups = std::map<std::string, std::vector<const Outcome*>>;
  Report report;
  report.rows = std::move(rows);
  std::vector<const Outcome*> all;
  Groups files;
  Groups families;
  Groups tiers;
  Groups kernels;
  for (const Outcome& row : report.rows) {
    all.push_back(&row);
    if (!row.kernel.empty()) kernels[row.kernel].push_back(&row);
    files[row.file].push_back(&row);
    families[row.family].push_back(&row);
    if (!row.tier.empty()) tiers[row.tier].push_back(&row);
  }
  for (const auto& [name, members] : files) report.files[name] = summary_of(members);
  for (const auto& [name, members] : families) report.families[name] = summary_of(members);
  for (const auto& [name, members] : tiers) report.tiers[name] = summary_of(members);
  for (const auto& [name, members] : kernels) report.kernels[name] = summary_of(members);
  report.overall = summary_of(all);
  return report;
}

const Summary& Report::score() const {
  const auto core = tiers.find("core");
  return core != tiers.end() && core->second.ok > 0 ? core->second : overall;
}

Result<Report> score(const std::vector<std::filesystem::path>& tables, const Options& options) {
  yaml::Loader loader({.catalogue = options.catalogue});
  FORESHARD_ASSIGN(auto communication, options.communication
                                           ? Result<comm::Parameters>(*options.communication)
                                           : loader.read_ref<comm::Parameters>(
                                                 study::kDefaultCommunication, "communication"));
  FORESHARD_TRY(fault_of_devices(loader));
  FORESHARD_ASSIGN(auto exclusions,
                   loader.read_ref<Exclusions>("excluded-collectives", "exclusions"));
  FORESHARD_ASSIGN(auto errors, study::read_parameter_errors(loader));
  FORESHARD_ASSIGN(auto kernel_formats, read_kernel_formats(loader));
  FORESHARD_ASSIGN(auto measured_steps,
                   loader.read_ref<study::MeasuredSteps>(study::kPublicSteps, "steps"));
  const Context context{.catalogue = options.catalogue,
                        .communication = std::move(communication),
                        .communication_is_given = options.communication.has_value(),
                        .errors = std::move(errors),
                        .exclusions = std::move(exclusions),
                        .machine = options.machine ? &*options.machine : nullptr,
                        .kernel_formats = std::move(kernel_formats),
                        .measured_steps = std::move(measured_steps)};

  std::vector<Task> tasks;
  std::vector<Outcome> outcomes;
  std::vector<std::string> files;
  std::vector<std::map<std::string, std::string>> tiers;
  std::vector<std::size_t> ends;
  for (const auto& path : tables) {
    if (describes_others(path)) continue;
    FORESHARD_ASSIGN(auto table, read_table(path, options.operation));
    keep_row(table, options.row);
    FORESHARD_ASSIGN(const auto jobs, jobs_of(table, context));
    FORESHARD_ASSIGN(auto beside, tiers_beside(path));
    for (const Job& job : jobs.jobs) tasks.push_back({job, outcomes.size()});
    outcomes.resize(outcomes.size() + jobs.outcomes);
    files.push_back(path.filename().string());
    tiers.push_back(std::move(beside));
    ends.push_back(outcomes.size());
  }
  if (!options.row.empty() && outcomes.empty()) return no_such_row(options.row);
  run_all(tasks, outcomes, options);
  for (std::size_t i = 0, file = 0; i < outcomes.size(); ++i) {
    while (i >= ends[file]) ++file;
    outcomes[i].file = files[file];
    const auto tier = tiers[file].find(outcomes[i].id);
    if (tier != tiers[file].end()) outcomes[i].tier = tier->second;
    set_blind(outcomes[i], context);
  }
  Report report = report_of(std::move(outcomes));
  if (options.regret) {
    FORESHARD_ASSIGN(report.regret, regret_of(report.rows, context, options.threads));
  }
  return report;
}

// Weight of rows of other tiers than core. Their sources leave settings open, so that their errors
// come in part from assumptions. evidence/tools/residuals prints what other weights would give.
static constexpr double kWeightOfOpenSettings = 0.1;

study::MeasuredSteps steps_of(const Report& report) {
  study::MeasuredStepCollector steps;
  for (const Outcome& row : report.rows)
    if (const auto pair = row.pair(); pair && row.kind && row.quantity == Quantity::kTime)
      steps.add(row.file, *row.kind, pair->measured / pair->predicted,
                row.tier.empty() || row.tier == "core" ? 1 : kWeightOfOpenSettings);
  return steps.collected();
}

Result<std::string> study_of_row(const std::vector<std::filesystem::path>& tables,
                                 const Options& options) {
  for (const auto& path : tables) {
    if (describes_others(path)) continue;
    FORESHARD_ASSIGN(auto table, read_table(path));
    keep_row(table, options.row);
    if (table.cells.rows.empty()) continue;
    if (has_columns(table.cells, step_columns()))
      return Error{Error::Code::kInvalidInput,
                   fmt::format("row '{}' names its study itself: {}", options.row,
                               Cells(table.cells, table.cells.rows.front(), "").text("study"))};
    FORESHARD_ASSIGN(const auto format, format_of(table.cells, options.catalogue));
    if (!format)
      return Error{
          Error::Code::kInvalidInput,
          fmt::format("row '{}' of {} is no measured step: no study", options.row, path.string())};
    FORESHARD_ASSIGN(const auto rows, read_training(table.cells, *format, path.string()));
    return study_text(rows.front(), *format, options.catalogue);
  }
  return no_such_row(options.row);
}

namespace {

// One strategy of a group.
struct Measured {
  Strategy strategy;
  std::string id;        // of its first row
  double measured = 0;   // mean of its rows, in seconds
  double simulated = 0;  // prediction of its first row, in seconds
  std::int64_t rows = 0;
};

struct Group {
  const Outcome* first;
  std::vector<Measured> strategies{};
};

// The cluster and the model of a study, as their part of its text.
std::string_view question_of(std::string_view study) {
  const auto begin = study.find("\ncluster:");
  return study.substr(begin, study.find("\nstrategy:") - begin);
}

// Rows with equal keys belong to one group.
auto key_of(const Outcome& row) {
  const Strategy& strategy = *row.strategy;
  return std::tuple(row.file, std::string(question_of(row.study)), strategy.framework->name,
                    strategy.global_batch, strategy.precision, strategy.quantization);
}

bool is_same(const Strategy& a, const Strategy& b) {
  return search::knobs_of(a) == search::knobs_of(b) &&
         words_of_recomputation(a) == words_of_recomputation(b) &&
         words_of_extras(a) == words_of_extras(b);
}

void add(const Outcome& row, Group& group) {
  const Strategy& strategy = *row.strategy;
  auto known = std::ranges::find_if(
      group.strategies, [&](const Measured& one) { return is_same(one.strategy, strategy); });
  if (known == group.strategies.end())
    known = group.strategies.insert(
        known, {.strategy = strategy, .id = row.id, .simulated = *row.predicted});
  const auto before = static_cast<double>(known->rows++);
  known->measured = (known->measured * before + *row.measured) / (before + 1);
}

std::vector<Group> groups_of(const std::vector<Outcome>& rows) {
  std::vector<Group> groups;
  std::map<decltype(key_of(rows.front())), std::size_t> known;
  for (const Outcome& row : rows) {
    if (row.status != RowStatus::kOk || row.quantity != Quantity::kTime || !row.strategy ||
        !row.pair() || row.strategy->offloads())
      continue;
    const auto [place, added] = known.try_emplace(key_of(row), groups.size());
    if (added) groups.push_back({.first = &row});
    add(row, groups[place->second]);
  }
  std::erase_if(groups,
                [](const Group& group) { return group.strategies.size() < kFewestStrategies; });
  return groups;
}

std::optional<double> tau_of(const Group& group) {
  std::vector<Pair> pairs;
  for (const Measured& one : group.strategies)
    pairs.push_back({one.measured, one.simulated, {}, {}});
  return kendall_tau(pairs);
}

Result<RegretGroup> searched(const Group& group, const Context& context) {
  const Outcome& first = *group.first;
  FORESHARD_ASSIGN(const auto study, study_of(first.id, first.study, context, false));
  const Strategy& like = *first.strategy;
  std::vector<Strategy> strategies;
  for (const Measured& one : group.strategies) strategies.push_back(one.strategy);
  FORESHARD_ASSIGN(const auto found,
                   search::search_among(study, strategies,
                                        {.simulate = 1,
                                         .certify = std::numeric_limits<std::int64_t>::max(),
                                         .front = 0,
                                         .threads = 1,
                                         .all_fit = true}));
  if (found.simulated.empty())
    return Error{Error::Code::kInfeasible, "nothing of " + first.file + " can be routed"};
  const Measured& chosen =
      group.strategies[static_cast<std::size_t>(found.simulated.front().order)];
  const Measured& fastest = *std::ranges::min_element(group.strategies, {}, &Measured::measured);
  std::vector<GroupMember> members;
  for (const Measured& one : group.strategies)
    members.push_back({one.id, one.measured * 1_s, one.simulated * 1_s});
  const Measured& least = *std::ranges::min_element(group.strategies, {}, &Measured::simulated);
  return RegretGroup{
      .file = first.file,
      .model = study.model.name,
      .device = (*study.cluster.node)->device->name,
      .devices = study.cluster.device_count(),
      .batch = like.global_batch,
      .sequence = study.model.sequence,
      .precision =
          std::string(like.quantization == Quantization::kNone ? name_of(like.precision)
                                                               : yaml::name_of(like.quantization)),
      .strategies = std::ssize(group.strategies),
      .members = std::move(members),
      .simulated = std::ssize(found.simulated),
      .certified = found.certified,
      .chosen = chosen.id,
      .fastest = fastest.id,
      .simulates = least.id,
      .regret_pct = 100 * (chosen.measured / fastest.measured - 1),
      .tau = tau_of(group),
      .slower_pct = 100 * (found.simulated.front().step.in_base() / least.simulated - 1)};
}

MeanRegret mean_of(const std::vector<RegretGroup>& groups) {
  MeanRegret mean{.groups = std::ssize(groups)};
  double tau = 0;
  std::int64_t ranked = 0;
  for (const RegretGroup& group : groups) {
    mean.mean_pct += group.regret_pct / static_cast<double>(mean.groups);
    mean.worst_pct = std::max(mean.worst_pct, group.regret_pct);
    if (!group.tau) continue;
    ++ranked;
    tau += *group.tau;
  }
  if (ranked > 0) mean.tau = tau / static_cast<double>(ranked);
  return mean;
}

}  // namespace

Result<Regret> regret_of(const std::vector<Outcome>& rows, const Context& context, int threads) {
  const std::vector<Group> groups = groups_of(rows);
  std::vector<std::optional<Result<RegretGroup>>> found(groups.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < groups.size(); i = next++)
      found[i] = searched(groups[i], context);
  };
  const auto most = std::max<std::int64_t>(std::ssize(groups), 1);
  in_threads(std::min<std::int64_t>(threads, most), [&](std::int64_t) { work(); });
  Regret regret;
  std::map<std::string, std::vector<RegretGroup>> files;
  for (auto& one : found) {
    FORESHARD_ASSIGN(auto group, *std::move(one));
    files[group.file].push_back(group);
    regret.groups.push_back(std::move(group));
  }
  for (const auto& [file, members] : files) regret.files[file] = mean_of(members);
  regret.overall = mean_of(regret.groups);
  return regret;
}

}  // namespace foreshard::accuracy
