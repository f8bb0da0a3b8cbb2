#include "evidence/report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/quantity.h"
#include "base/record/csv.h"
#include "base/record/record.h"
#include "base/text.h"

#include "sim/study/records.h"
#include "validate/tables/collective_summary.h"

namespace foreshard::accuracy {

using record::Record;
using record::unless_empty;

namespace {

std::string cell(const std::optional<double>& number, const char* sign = "") {
  if (!number) return "-";
  return *sign == '+' ? fmt::format("{:+.1f}", *number) : fmt::format("{:.1f}", *number);
}

constexpr std::size_t kNameWidth = 46;

std::string shortened(const std::string& name) {
  return name.size() <= kNameWidth ? name : name.substr(0, kNameWidth - 3) + "...";
}

std::string line_of(const std::string& name, const Summary& summary) {
  std::string line = fmt::format(
      "{:<{}} {:>6} {:>6} {:>7} {:>7} {:>6} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6}", shortened(name),
      kNameWidth, summary.rows, summary.ok, summary.assumed, summary.unsupported,
      summary.infeasible, cell(summary.time.mape_pct), cell(summary.time.median_ape_pct),
      cell(summary.time.p90_ape_pct), cell(summary.time.bias_pct, "+"),
      summary.time.kendall_tau ? fmt::format("{:.2f}", *summary.time.kendall_tau) : "-",
      summary.time.interval_coverage_pct
          ? fmt::format("{:.0f}", *summary.time.interval_coverage_pct)
          : "-");
  if (summary.memory.pairs > 0) line += fmt::format("  memory {} %", cell(summary.memory.mape_pct));
  return line + "\n";
}

std::string section(const std::string& title, const std::map<std::string, Summary>& summaries) {
  if (summaries.empty()) return "";
  std::string text = "\n" + title + "\n";
  for (const auto& [name, summary] : summaries) text += line_of(name, summary);
  return text;
}

// A value of the row's quantity as people read it.
std::string shown(const Outcome& row, double value) {
  return row.quantity == Quantity::kMemory ? format(value * 1_B) : format(value * 1_s);
}

std::string worst_rows(const Report& report) {
  constexpr std::size_t kWorst = 5;
  std::vector<const Outcome*> rows;
  for (const Outcome& row : report.rows)
    if (row.pair()) rows.push_back(&row);
  std::ranges::stable_sort(rows, [](const Outcome* a, const Outcome* b) {
    return std::abs(a->pair()->error_pct()) > std::abs(b->pair()->error_pct());
  });
  if (rows.size() > kWorst) rows.resize(kWorst);
  if (rows.empty()) return "";
  std::string text = "\nfarthest off\n";
  for (const Outcome* row : rows) {
    text += fmt::format("  {:<14} {:+7.1f} %  measured {}, predicted {}  ({})", row->id,
                        row->pair()->error_pct(), shown(*row, *row->measured),
                        shown(*row, *row->predicted), row->file);
    if (!row->assumed.empty()) text += "; assumed: " + join(row->assumed);
    text += "\n";
  }
  return text;
}

std::string reasons(const Report& report) {
  const auto counts = reasons_of(report.rows);
  if (counts.empty()) return "";
  std::string text = "\nrows without a prediction\n";
  for (const auto& [reason, count] : counts) text += fmt::format("  {:>6}  {}\n", count, reason);
  return text;
}

std::string line_of(const std::string& name, const MeanRegret& mean) {
  return fmt::format("{:<{}} {:>6} {:>7.1f} {:>7.1f} {:>6}\n", shortened(name), kNameWidth,
                     mean.groups, mean.mean_pct, mean.worst_pct,
                     mean.tau ? fmt::format("{:.2f}", *mean.tau) : "-");
}

std::string text_of(const Regret& regret) {
  if (regret.groups.empty())
    return fmt::format("\nno {} strategies of one model were measured on the same devices\n",
                       kFewestStrategies);
  std::string text =
      fmt::format("\n{:<{}} {:>6} {:>7} {:>7} {:>6}\n", "regret of a search, in percent",
                  kNameWidth, "groups", "mean", "worst", "tau");
  text += line_of("all", regret.overall);
  for (const auto& [name, mean] : regret.files) text += line_of(name, mean);
  const auto worst = std::ranges::max_element(regret.groups, {}, &RegretGroup::regret_pct);
  if (worst->regret_pct > 0)
    text += fmt::format("worst: of {} strategies of {} on {} {}, {} is taken, {} was the fastest\n",
                        worst->strategies, worst->model, worst->devices, worst->device,
                        worst->chosen, worst->fastest);
  return text;
}

}  // namespace

std::string to_text(const Report& report) {
  std::string text =
      fmt::format("{:<{}} {:>6} {:>6} {:>7} {:>7} {:>6} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6}\n",
                  "error in percent", kNameWidth, "rows", "ok", "assumed", "unsupp.", "infeas",
                  "mean", "median", "p90", "bias", "tau", "within");
  text += line_of("all", report.overall);
  text += section("by tier", report.tiers);
  text += section("by file", report.files);
  text += section("by source", report.families);
  text += section("by kernel", report.kernels);
  text += to_text(collective_summary(report.rows));
  if (report.regret) text += text_of(*report.regret);
  return text + worst_rows(report) + reasons(report);
}

const Record<Outcome>& record_of(const Outcome*) {
  const auto by_quantity = [](std::string_view time, std::string_view memory) {
    return [=](const Outcome& row) { return row.quantity == Quantity::kMemory ? memory : time; };
  };
  static const auto record =
      Record<Outcome>("row")
          .field("id", &Outcome::id)
          .field("file", &Outcome::file)
          .field("family", &Outcome::family, "The row's source.")
          .field("tier", unless_empty<&Outcome::tier>)
          .field("quantity", by_quantity("time", "memory"), "", record::one_of({"time", "memory"}))
          .field("unit", by_quantity("s", "B"), "", record::one_of({"s", "B"}))
          .field("measured", &Outcome::measured)
          .field("predicted", &Outcome::predicted)
          .field("low", &Outcome::low)
          .field("high", &Outcome::high)
          .field("error_pct",
                 [](const Outcome& row) {
                   const auto pair = row.pair();
                   return pair ? std::optional(pair->error_pct()) : std::nullopt;
                 })
          .field(
              "status", [](const Outcome& row) { return name_of(row.status); }, "",
              record::one_of({"ok", "unsupported", "infeasible", "excluded"}))
          .field("reason", unless_empty<&Outcome::reason>)
          .field("assumed", &Outcome::assumed, "Settings that the table leaves open.")
          .sometimes(
              "framework",
              [](const Outcome& row) {
                return row.widened_low ? std::optional(row.framework) : std::nullopt;
              },
              "The framework whose measured steps the interval rests on.")
          .sometimes("widened_low", &Outcome::widened_low,
                     "Factor by which less certain parameters widen the interval.")
          .sometimes("widened_high", &Outcome::widened_high)
          .sometimes("kernel", unless_empty<&Outcome::kernel>, "Kind of kernel, and its device.")
          .sometimes("nccl_s", &Outcome::nccl, "Estimate of NCCL's own tuner.")
          .sometimes("breakdown_s", &Outcome::breakdown);
  return record;
}

const Record<Summary>& record_of(const Summary*) {
  using record::at;
  static const auto record =
      Record<Summary>("summary")
          .field("rows", &Summary::rows)
          .field("ok", &Summary::ok)
          .field("assumed", &Summary::assumed)
          .field("unsupported", &Summary::unsupported)
          .field("infeasible", &Summary::infeasible)
          .field("excluded", &Summary::excluded)
          .field("mape_pct", at<&Summary::time, &Statistics::mape_pct>)
          .field("median_ape_pct", at<&Summary::time, &Statistics::median_ape_pct>)
          .field("p90_ape_pct", at<&Summary::time, &Statistics::p90_ape_pct>)
          .field("bias_pct", at<&Summary::time, &Statistics::bias_pct>)
          .field("kendall_tau", at<&Summary::time, &Statistics::kendall_tau>)
          .field("interval_coverage_pct", at<&Summary::time, &Statistics::interval_coverage_pct>)
          .field("memory_rows", at<&Summary::memory, &Statistics::pairs>)
          .field("memory_mape_pct", at<&Summary::memory, &Statistics::mape_pct>)
          .field("memory_bias_pct", at<&Summary::memory, &Statistics::bias_pct>);
  return record;
}

const Record<OperationError>& record_of(const OperationError*) {
  static const auto record = Record<OperationError>("operation")
                                 .field("rows_below_1MiB", &OperationError::rows_below)
                                 .field("median_ape_below_1MiB_pct", &OperationError::below_pct)
                                 .field("rows_from_1MiB", &OperationError::rows_from)
                                 .field("median_ape_from_1MiB_pct", &OperationError::from_pct);
  return record;
}

const Record<NcclCell>& record_of(const NcclCell*) {
  static const auto record = Record<NcclCell>("nccl_cell", "Rows that NCCL's tuner can estimate.")
                                 .field("machine", &NcclCell::machine)
                                 .field("operation", &NcclCell::operation)
                                 .field("size_class", &NcclCell::size_class)
                                 .field("rows", &NcclCell::rows)
                                 .field("median_ape_pct", &NcclCell::ours_pct)
                                 .field("nccl_median_ape_pct", &NcclCell::nccl_pct);
  return record;
}

const Record<CollectiveSummary>& record_of(const CollectiveSummary*) {
  static const auto record =
      Record<CollectiveSummary>("collectives")
          .field("operations", &CollectiveSummary::operations)
          .field("nccl_cells", &CollectiveSummary::cells)
          .field("nccl_cells_won", &CollectiveSummary::cells_won,
                 "Cells in which the prediction is closer than NCCL's tuner.");
  return record;
}

const Record<MeanRegret>& record_of(const MeanRegret*) {
  static const auto record = Record<MeanRegret>("mean_regret")
                                 .field("groups", &MeanRegret::groups)
                                 .field("mean_pct", &MeanRegret::mean_pct)
                                 .field("worst_pct", &MeanRegret::worst_pct)
                                 .field("kendall_tau", &MeanRegret::tau, "Mean of the groups'.");
  return record;
}

const Record<RegretGroup>& record_of(const RegretGroup*) {
  using Of = RegretGroup;
  static const auto record =
      Record<Of>("regret_group")
          .field("file", &Of::file)
          .field("model", &Of::model)
          .field("device", &Of::device)
          .field("devices", &Of::devices)
          .field("global_batch", &Of::batch)
          .field("sequence", &Of::sequence)
          .field("precision", &Of::precision)
          .field("strategies", &Of::strategies, "Different strategies that were measured.")
          .field("simulated", &Of::simulated, "Strategies simulated to certify the choice.")
          .field("certified", &Of::certified)
          .field("chosen", &Of::chosen, "The row with the strategy that a search takes.")
          .field("fastest_measured", &Of::fastest)
          .field("fastest_simulated", &Of::simulates)
          .field("regret_pct", &Of::regret_pct,
                 "Measured slowdown of the choice against the fastest measured strategy.")
          .field("kendall_tau", &Of::tau, "Of measured against simulated times.")
          .field("slower_than_fastest_simulated_pct", &Of::slower_pct);
  return record;
}

const Record<Regret>& record_of(const Regret*) {
  static const auto record = Record<Regret>("regret")
                                 .field("overall", &Regret::overall)
                                 .field("files", &Regret::files)
                                 .field("groups", &Regret::groups);
  return record;
}

const Record<Report>& record_of(const Report*) {
  static const auto record =
      Record<Report>::result("foreshard.accuracy/1",
                             "Predictions beside tables of measurements, as `accuracy` writes "
                             "them. Errors in percent; negative: predicted too small.")
          .field("rows", &Report::rows)
          .group("summaries", Record<Report>()
                                  .field("overall", &Report::overall)
                                  .field("files", &Report::files)
                                  .field("families", &Report::families)
                                  .field("tiers", &Report::tiers)
                                  .field("kernels", &Report::kernels))
          .sometimes("collectives",
                     [](const Report& report) {
                       auto summary = collective_summary(report.rows);
                       return summary.operations.empty() ? std::nullopt
                                                         : std::optional(std::move(summary));
                     })
          .sometimes("regret", &Report::regret, "With --regret.");
  return record;
}

std::string to_json(const Report& report, bool with_rows) {
  record::Json json = record::write(report);
  if (!with_rows) json["rows"].clear();
  return record::text_of(json, 1);
}

std::string to_csv(const Report& report) {
  std::vector<record::Json> rows;
  for (const Outcome& row : report.rows) rows.push_back(record::write(row));
  std::vector<record::Column> columns{{"id"},
                                      {"file"},
                                      {"family"},
                                      {"tier"},
                                      {"quantity"},
                                      {"measured"},
                                      {"predicted"},
                                      {"low"},
                                      {"high"},
                                      {"error_pct"},
                                      {"status"},
                                      {"reason"},
                                      {"assumed", "", " "}};
  for (const sim::BreakdownPart& part : sim::kBreakdownParts)
    columns.push_back({fmt::format("{}_s", part.key), fmt::format("breakdown_s/{}", part.key)});
  columns.insert(columns.end(), {{"nccl_s"}, {"kernel"}});
  return record::csv(columns, rows);
}

}  // namespace foreshard::accuracy
