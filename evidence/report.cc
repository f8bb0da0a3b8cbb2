#include "evidence/report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "base/quantity.h"
#include "base/record/csv.h"
#include "base/record/record.h"
#include "base/text.h"

#include "validate/tables/outcome.h"

namespace foreshard::accuracy {

using record::Record;
using record::unless_empty;

namespace {

std::string cell(const std::optional<double>& number, const char* sign = "") {
  if (!number) return "-";
  return *sign == '+' ? fmt::format("{:+.1f}", *number) : fmt::format("{:.1f}", *number);
}

void add_row(TextTable& table, const std::string& name, const Summary& summary) {
  const Statistics& time = summary.time;
  table.row(name, summary.rows, summary.ok, summary.assumed, summary.unsupported,
            summary.infeasible, cell(time.mape_pct), cell(time.median_ape_pct),
            cell(time.p90_ape_pct), cell(time.bias_pct, "+"),
            time.kendall_tau ? fmt::format("{:.2f}", *time.kendall_tau) : "-",
            time.interval_coverage_pct ? fmt::format("{:.0f}", *time.interval_coverage_pct) : "-",
            summary.memory.pairs > 0 ? cell(summary.memory.mape_pct) + " %" : "");
}

void add_section(TextTable& table, const std::string& title,
                 const std::map<std::string, Summary>& summaries) {
  if (summaries.empty()) return;
  table.row("\n" + title);
  for (const auto& [name, summary] : summaries) add_row(table, name, summary);
}

// A value of the row's quantity as people read it.
std::string shown(const Outcome& row, double value) {
  return row.quantity == Quantity::kMemory ? format(value * 1_B) : format(value * 1_s);
}

void write_worst_rows(Page& page, const Report& report) {
  constexpr std::size_t kWorst = 5;
  std::vector<const Outcome*> rows;
  for (const Outcome& row : report.rows)
    if (row.pair()) rows.push_back(&row);
  std::ranges::stable_sort(rows, [](const Outcome* a, const Outcome* b) {
    return std::abs(a->pair()->error_pct()) > std::abs(b->pair()->error_pct());
  });
  if (rows.size() > kWorst) rows.resize(kWorst);
  if (rows.empty()) return;
  TextTable table({"<", ">", "<"});
  for (const Outcome* row : rows)
    table.row(row->id, fmt::format("{:+.1f} %", row->pair()->error_pct()),
              fmt::format("measured {}, predicted {}  ({}){}{}", shown(*row, *row->measured),
                          shown(*row, *row->predicted), row->file,
                          row->assumed.empty() ? "" : "; assumed: ", join(row->assumed)));
  page.line("\nfarthest off");
  page.table(table);
}

void write_reasons(Page& page, const Report& report) {
  const auto counts = reasons_of(report.rows);
  if (counts.empty()) return;
  TextTable table({">", "<"});
  for (const auto& [reason, count] : counts) table.row(count, reason);
  page.line("\nrows without a prediction");
  page.table(table);
}

void write_regret(Page& page, const Regret& regret) {
  if (regret.groups.empty())
    return page.line(fmt::format(
        "\nno {} strategies of one model were measured on the same devices", kFewestStrategies));
  TextTable table({"<regret of a search, in percent", ">groups", ">mean", ">worst", ">tau"});
  const auto add = [&](const std::string& name, const MeanRegret& mean) {
    table.row(name, mean.groups, cell(mean.mean_pct), cell(mean.worst_pct),
              mean.tau ? fmt::format("{:.2f}", *mean.tau) : "-");
  };
  add("all", regret.overall);
  for (const auto& [name, mean] : regret.files) add(name, mean);
  page.table(table);
  const auto worst = std::ranges::max_element(regret.groups, {}, &RegretGroup::regret_pct);
  if (worst->regret_pct > 0)
    page.line(fmt::format("worst: of {} strategies of {} on {} {}, {} is taken, {} was the fastest",
                          worst->strategies, worst->model, worst->devices, worst->device,
                          worst->chosen, worst->fastest));
}

}  // namespace

std::string to_text(const Report& report, const Paper& paper) {
  Page page(paper);
  TextTable table({"<error in percent", ">rows", ">ok", ">assumed", ">unsupp.", ">infeas", ">mean",
                   ">median", ">p90", ">bias", ">tau", ">within",
                   report.overall.memory.pairs > 0 ? ">memory" : ">"});
  add_row(table, "all", report.overall);
  add_section(table, "by tier", report.tiers);
  add_section(table, "by file", report.files);
  add_section(table, "by source", report.families);
  add_section(table, "by kernel", report.kernels);
  page.table(table);
  write(page, collective_summary(report.rows));
  if (report.regret) write_regret(page, *report.regret);
  write_worst_rows(page, report);
  write_reasons(page, report);
  return std::move(page).take();
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
                return row.kind ? std::optional(row.kind->framework) : std::nullopt;
              },
              "The framework of the step.")
          .sometimes("kind", &Outcome::kind, "What the step is, for intervals of steps like it.")
          .sometimes("widened_low", &Outcome::widened_low,
                     "Factor by which less certain parameters widen the interval.")
          .sometimes("widened_high", &Outcome::widened_high)
          .sometimes("blind_low", &Outcome::blind_low,
                     "Interval that the steps of all other sources give.")
          .sometimes("blind_high", &Outcome::blind_high)
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

const Record<GroupMember>& record_of(const GroupMember*) {
  static const auto record = Record<GroupMember>("group_member", "A measured strategy.")
                                 .field("id", &GroupMember::id, "Its first row.")
                                 .field("measured_s", &GroupMember::measured, "Mean of its rows.")
                                 .field("simulated_s", &GroupMember::simulated);
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
          .field("members", &Of::members)
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

namespace {

using Rows = std::vector<const Outcome*>;
using Groups = std::map<std::string, Rows>;

std::string percent(const std::optional<double>& number, bool is_signed = false) {
  if (!number) return "-";
  return is_signed ? fmt::format("{:+.1f} %", *number) : fmt::format("{:.1f} %", *number);
}

std::string plain(const std::optional<double>& number) {
  return number ? fmt::format("{:.2f}", *number) : "-";
}

constexpr const char* kHead =
    "| {} | rows | predicted | median | mean | bias | p90 | tau | within |{}\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |{}\n";

std::string scores_of(const std::string& name, const Summary& summary,
                      const std::string& rest = "") {
  const Statistics& time = summary.time;
  return fmt::format(
      "| {} | {} | {} | {} | {} | {} | {} | {} | {} |{}\n", name, summary.rows, summary.ok,
      percent(time.median_ape_pct), percent(time.mape_pct), percent(time.bias_pct, true),
      percent(time.p90_ape_pct), plain(time.kendall_tau),
      time.interval_coverage_pct ? fmt::format("{:.0f} %", *time.interval_coverage_pct) : "-",
      rest);
}

std::string ranking_of(const std::string& file, const Report& report) {
  const MeanRegret* mean = nullptr;
  if (report.regret) {
    const auto found = report.regret->files.find(file);
    if (found != report.regret->files.end()) mean = &found->second;
  }
  return mean ? fmt::format(" {} | {} | {:.1f} % |", mean->groups, plain(mean->tau), mean->mean_pct)
              : " - | - | - |";
}

// The mean of the tables' medians and of their biases; each table counts the same.
std::string means(const std::map<std::string, Summary>& summaries) {
  double medians = 0;
  double biases = 0;
  std::int64_t count = 0;
  for (const auto& [name, summary] : summaries) {
    if (!summary.time.median_ape_pct) continue;
    ++count;
    medians += *summary.time.median_ape_pct;
    biases += *summary.time.bias_pct;
  }
  if (count == 0) return "";
  const auto of = static_cast<double>(count);
  return fmt::format(
      "\nMean over {} tables: of their medians {:.1f} %, of their biases {:+.1f} %.\n", count,
      medians / of, biases / of);
}

std::string tables_text(const Groups& files, const Rows& scored, const Report& report) {
  std::string text = "## Tables\n\n";
  text += fmt::format(fmt::runtime(kHead), "table", " groups | tau in groups | regret |",
                      " ---: | ---: | ---: |");
  std::map<std::string, Summary> summaries;
  for (const auto& [name, rows] : files) {
    summaries[name] = summary_of(rows);
    text += scores_of(name, summaries[name], ranking_of(name, report));
  }
  std::string all = " - | - | - |";
  if (report.regret && report.regret->overall.groups > 0)
    all = fmt::format(" {} | {} | {:.1f} % |", report.regret->overall.groups,
                      plain(report.regret->overall.tau), report.regret->overall.mean_pct);
  text += scores_of("**all**", summary_of(scored), all) + means(summaries);
  std::string tendencies;
  for (const auto& [name, rows] : files)
    if (const auto tendency = tendency_of(rows))
      tendencies += fmt::format("- {}: {}\n", name, in_words(*tendency));
  if (!tendencies.empty()) text += "\nWhat the errors of a table grow with:\n\n" + tendencies;
  return text;
}

std::string groups_text(const char* title, const char* word, const Groups& groups) {
  if (groups.empty()) return "";
  std::string text =
      fmt::format("\n## {}\n\n", title) + fmt::format(fmt::runtime(kHead), word, "", "");
  for (const auto& [name, rows] : groups) text += scores_of(name, summary_of(rows));
  return text;
}

std::string memory_text(const Report& report) {
  std::string lines;
  for (const auto& [name, summary] : report.files)
    if (summary.memory.pairs > 0)
      lines += fmt::format("| {} | {} | {} | {} | {} |\n", name, summary.memory.pairs,
                           percent(summary.memory.median_ape_pct), percent(summary.memory.mape_pct),
                           percent(summary.memory.bias_pct, true));
  if (lines.empty()) return "";
  return "\n## Peak memory\n\n| table | rows | median | mean | bias |\n"
         "| --- | ---: | ---: | ---: | ---: |\n" +
         lines;
}

std::string worst_text(Rows rows, const Groups& files) {
  constexpr std::size_t kWorst = 10;
  std::erase_if(rows, [](const Outcome* row) { return !row->pair(); });
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const Outcome* row) { return std::abs(row->pair()->error_pct()); });
  if (rows.size() > kWorst) rows.resize(kWorst);
  if (rows.empty()) return "";
  std::string text =
      "\n## Farthest off\n\n| row | table | measured | predicted | error | likely cause |\n"
      "| --- | --- | ---: | ---: | ---: | --- |\n";
  for (const Outcome* row : rows)
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", row->id, row->file,
                        format(*row->measured * 1_s), format(*row->predicted * 1_s),
                        percent(row->pair()->error_pct(), true),
                        likely_causes(*row, tendency_of(files.at(row->file))));
  return text;
}

std::string reasons_text(const Report& report) {
  const auto counts = reasons_of(report.rows);
  if (counts.empty()) return "";
  std::string text = "\n## Rows without a prediction\n\n| rows | why |\n| ---: | --- |\n";
  for (const auto& [reason, count] : counts) text += fmt::format("| {} | {} |\n", count, reason);
  return text;
}

}  // namespace

std::string to_markdown(const Report& report) {
  const bool tiered =
      std::ranges::any_of(report.rows, [](const Outcome& row) { return row.tier == "core"; });
  Rows scored;
  Groups files;
  Groups frameworks;
  Groups kernels;
  Groups other;
  for (const Outcome& row : report.rows) {
    if (row.quantity == Quantity::kMemory) continue;
    if (tiered && row.tier != "core") {
      other[fmt::format("{}, tier {}", row.file, row.tier.empty() ? "none" : row.tier)].push_back(
          &row);
      continue;
    }
    scored.push_back(&row);
    files[row.file].push_back(&row);
    if (row.kind) frameworks[row.kind->framework].push_back(&row);
    if (!row.kernel.empty()) kernels[row.kernel].push_back(&row);
  }
  return fmt::format(
             "# How far predictions are from measurements\n\n"
             "Made by `foreshard accuracy TABLE.csv ... --report FILE.md`. Errors are (predicted - "
             "measured) / measured{}. *within*: measured within the 80 % "
             "interval that the steps of all other tables give. *tau*: Kendall's, of all rows of "
             "the line; *tau in groups* and *regret*: "
             "means over groups of {} and more strategies of one model on the same devices.\n\n",
             tiered ? ", of rows of tier core" : "", kFewestStrategies) +
         tables_text(files, scored, report) + groups_text("Frameworks", "framework", frameworks) +
         groups_text("Kernels", "kernel", kernels) + groups_text("Other tiers", "table", other) +
         memory_text(report) + worst_text(scored, files) + reasons_text(report);
}

namespace {

// Uncertain parameters are named as a cause only if they widen the row's interval by more than this
// factor; otherwise the framework's own error dominates.
constexpr double kNotableWidening = 1.1;

// The part's share of the predicted time.
double share_of(const Outcome& row, const sim::BreakdownPart& part) {
  return ((*row.breakdown).*part.time).in_base() / *row.predicted;
}

// Pearson's correlation of |error| with the part's share; empty if either does not vary.
std::optional<double> correlation_with(const sim::BreakdownPart& part,
                                       const std::vector<const Outcome*>& rows) {
  const auto count = static_cast<double>(rows.size());
  double mean_share = 0;
  double mean_error = 0;
  for (const Outcome* row : rows) {
    mean_share += share_of(*row, part) / count;
    mean_error += std::abs(row->pair()->error_pct()) / count;
  }
  double both = 0;
  double shares = 0;
  double errors = 0;
  for (const Outcome* row : rows) {
    const double share = share_of(*row, part) - mean_share;
    const double error = std::abs(row->pair()->error_pct()) - mean_error;
    both += share * error;
    shares += share * share;
    errors += error * error;
  }
  if (!(shares > 1e-9) || !(errors > 1e-9)) return std::nullopt;
  return both / std::sqrt(shares * errors);
}

}  // namespace

std::optional<Tendency> tendency_of(const std::vector<const Outcome*>& rows) {
  std::vector<const Outcome*> known;
  std::ranges::copy_if(rows, std::back_inserter(known),
                       [](const Outcome* row) { return row->breakdown && row->pair(); });
  if (known.size() < kFewestOfTendency) return std::nullopt;
  std::optional<Tendency> strongest;
  for (const sim::BreakdownPart& part : sim::kBreakdownParts) {
    const auto correlation = correlation_with(part, known);
    if (!correlation || *correlation < kWeakestTendency) continue;
    if (!strongest || *correlation > strongest->correlation)
      strongest = Tendency{&part, *correlation};
  }
  return strongest;
}

std::string in_words(const Tendency& tendency) {
  return fmt::format("farthest off where the share of {} is large (r = {:.2f})",
                     tendency.part->name, tendency.correlation);
}

std::string likely_causes(const Outcome& row, const std::optional<Tendency>& table) {
  std::vector<std::string> causes;
  if (!row.reason.empty()) causes.push_back(row.reason);
  if (!row.assumed.empty()) causes.push_back("assumed: " + join(row.assumed));
  if (row.widened_low && std::max(1 / *row.widened_low, *row.widened_high) > kNotableWidening)
    causes.emplace_back("rates or links that nobody measured on its devices");
  if (table) causes.push_back("its table is " + in_words(*table));
  if (row.breakdown) {
    const auto beside = std::ranges::max_element(
        sim::kBreakdownParts.begin() + 1, sim::kBreakdownParts.end(), {},
        [&](const sim::BreakdownPart& part) { return share_of(row, part); });
    causes.push_back(fmt::format("{:.0f} % computation, {:.0f} % {}",
                                 100 * share_of(row, sim::kBreakdownParts.front()),
                                 100 * share_of(row, *beside), beside->name));
  }
  return join(causes, "; ");
}

}  // namespace foreshard::accuracy
