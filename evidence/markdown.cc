#include "evidence/markdown.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "base/quantity.h"
#include "base/text.h"
#include "evidence/causes.h"

namespace foreshard::accuracy {
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
    if (!row.framework.empty()) frameworks[row.framework].push_back(&row);
    if (!row.kernel.empty()) kernels[row.kernel].push_back(&row);
  }
  return fmt::format(
             "# How far predictions are from measurements\n\n"
             "Made by `foreshard accuracy TABLE.csv ... --report FILE.md`. Errors are (predicted - "
             "measured) / measured{}. *within*: measured within the 80 % "
             "interval. *tau*: Kendall's, of all rows of the line; *tau in groups* and *regret*: "
             "means over groups of {} and more strategies of one model on the same devices.\n\n",
             tiered ? ", of rows of tier core" : "", kFewestStrategies) +
         tables_text(files, scored, report) + groups_text("Frameworks", "framework", frameworks) +
         groups_text("Kernels", "kernel", kernels) + groups_text("Other tiers", "table", other) +
         memory_text(report) + worst_text(scored, files) + reasons_text(report);
}

}  // namespace foreshard::accuracy
