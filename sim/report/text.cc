// Writes a report for people (text.h), the default output of `foreshard simulate`.
#include "sim/report/text.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <vector>

#include "base/page.h"
#include "base/quantity.h"
#include "base/text.h"

#include "sim/report/internal/disturbed.h"
#include "sim/report/numbers.h"
#include "sim/study/records.h"

namespace foreshard::report {
namespace {

constexpr std::size_t kMostRows = 16;   // rows of a table; a longer table is summed up
constexpr std::size_t kMostShares = 5;  // entries of the critical path

void write_head(Page& page, const Report& report) {
  const Subject& subject = report.subject;
  page.box(
      subject.description.empty() ? subject.name : subject.description,
      {{"model", subject.model}, {"cluster", subject.cluster}, {"strategy", subject.strategy}});
}

std::string described(const sim::Speed& speed) {
  const std::string name(name_of(speed.kind));
  return speed.device.empty() ? name : fmt::format("{}, {}", name, speed.device);
}

// Leaves out speeds whose effect is too small to show.
void write_sensitivities(Page& page, const sim::Sensitivities& sensitivities) {
  constexpr double kLeast = 5e-4;  // smallest elasticity, or saving by 10 % more, to show
  page.heading("What faster parts buy", "each alone, algorithms held");
  TextTable table({"<", ">by 1 %", ">by 10 %", ">then"});
  for (const sim::Sensitivity& one : sensitivities.of) {
    const double saved = 1 - one.step_at_more / sensitivities.step;
    if (-one.elasticity < kLeast && saved < kLeast) continue;
    table.row(described(one.speed), fmt::format("{:.2f} %", -one.elasticity), percent(saved),
              format(one.step_at_more));
  }
  page.table(table);
}

// The first line about a step that does not run: it precedes all times.
void write_verdict(Page& page, const sim::Prediction& prediction) {
  if (prediction.interruption) {
    page.line(page.toned("Does not finish: the step never ends.", Tone::kBad));
  } else if (!prediction.fits && !prediction.classes.empty()) {
    const auto& worst = prediction.classes[static_cast<std::size_t>(prediction.worst_memory)];
    page.line(
        page.toned(fmt::format("Does not fit: rank {} ({}) needs {} and has room for {}.",
                               worst.representative, worst.role, format(worst.memory.peak),
                               format(prediction.memory_capacity - prediction.memory_reserve)),
                   Tone::kBad));
  }
}

void write_result(Page& page, const Report& report) {
  const sim::Prediction& prediction = report.prediction;
  const double step = prediction.step.in_base();
  const auto devices = static_cast<double>(prediction.devices);
  TextTable table({"<", "<"});
  page.line();
  if (prediction.interruption) {
    table.row("step time", page.toned("never", Tone::kBad) + "   " +
                               page.toned(fmt::format("nothing moves any more after {}",
                                                      format(prediction.step)),
                                          Tone::kFaint));
    return page.table(table);
  }
  if (!prediction.fits) page.line("  With enough memory it would take:");
  table.row("step time",
            fmt::format("{}   {}", page.toned(format(prediction.step), Tone::kStrong),
                        page.toned(fmt::format("between {} and {}", format(prediction.low),
                                               format(prediction.high)),
                                   Tone::kFaint)));
  if (!prediction.interval_source.text.empty())
    table.row("interval", prediction.interval_source.text);
  if (!prediction.interval_source.narrowed_by.empty())
    table.row("", prediction.interval_source.narrowed_by);
  if (report.measured) {
    std::string words = fmt::format(
        "{} of the step rests on times that were given; {} of {} rows are used",
        percent(report.measured->time / prediction.step),
        report.measured->rows - std::ssize(report.measured->unused), report.measured->rows);
    constexpr std::size_t kMostUnused = 5;
    for (std::size_t i = 0; i < std::min(kMostUnused, report.measured->unused.size()); ++i)
      words += (i == 0 ? ". Unused: " : "; ") + report.measured->unused[i];
    if (report.measured->unused.size() > kMostUnused)
      words += fmt::format("; and {} more (--format json lists all)",
                           report.measured->unused.size() - kMostUnused);
    table.row("measured", words);
  }
  if (prediction.routing) {
    const sim::ExpertLoadSpread& routing = *prediction.routing;
    table.row("routing",
              fmt::format("the busiest rank gets {:.2f} times its share of the tokens ({:.2f} in "
                          "5 of 100 drawn steps); 90 of 100 take {} to {}",
                          routing.mean_load, routing.high_load, format(routing.low),
                          format(routing.high)));
  }
  if (const auto& drawn = report.drawn)
    table.row("branches",
              fmt::format("{} on average over {} steps whose branches were drawn anew, {} "
                          "(median), 80 of 100 between {} and {}",
                          format(drawn->mean), drawn->draws, format(drawn->median),
                          format(drawn->low), format(drawn->high)));
  if (step <= 0) return page.table(table);
  const bool has_tokens = prediction.tokens > 0;
  const std::string samples =
      fmt::format("{} {}s/s", scaled(prediction.samples / step), report.subject.sample);
  const std::string each =
      has_tokens ? scaled(prediction.tokens / step / devices) + " tokens/s"
                 : fmt::format("{} {}s/s", scaled(prediction.samples / step / devices),
                               report.subject.sample);
  std::string tokens = has_tokens ? scaled(prediction.tokens / step) + " tokens/s" : "";
  if (has_tokens && report.subject.computed_per_token > 1)
    tokens += fmt::format(" of samples ({} computed)",
                          scaled(prediction.tokens / step * report.subject.computed_per_token));
  table.row("throughput", tokens + (has_tokens ? ", " : "") + samples);
  table.row("each device",
            fmt::format("{}, {:.1f} TFLOP/s, {} of the peak (MFU)", each,
                        prediction.model_tflops_per_device, percent(prediction.mfu)));
  if (prediction.idle + prediction.down > 0)
    table.row("devices", fmt::format("{} used, {} idle, {} down; rates are per device used",
                                     grouped(prediction.devices), grouped(prediction.idle),
                                     grouped(prediction.down)));
  page.table(table);
}

// Adds money, energy and CO2 for `steps` steps.
void add_bill(TextTable& table, const sim::Expense& expense, const std::string& what, double steps,
              const std::string& time) {
  const auto usd = expense.usd();
  table.row(what, usd ? scaled(*usd / 1_USD * steps) + " USD" : "no price",
            expense.energy ? watt_hours(*expense.energy * steps) : "no power",
            expense.carbon ? format(*expense.carbon * steps) + " CO2" : "", time);
}

// Shares of energy, unless devices take all of it: "devices 82 %, hosts 18 %".
std::string energy_shares_of(const sim::Expense& expense) {
  if (!expense.energy || !(*expense.energy > 0_J)) return "";
  std::vector<std::string> shares;
  const auto add = [&](std::string_view who, Joules part) {
    if (part > 0_J) shares.push_back(fmt::format("{} {}", who, percent(part / *expense.energy)));
  };
  add("devices", expense.parts.devices);
  add("hosts", expense.parts.hosts);
  add("network", expense.parts.network);
  add("other", expense.parts.other);
  add("cooling", expense.parts.cooling);
  return shares.size() > 1 ? join(shares) : "";
}

void write_expense(Page& page, const sim::Prediction& prediction) {
  if (prediction.interruption) return;
  const sim::Expense& expense = prediction.expense;
  std::string whose = fmt::format("{} devices", grouped(prediction.devices + expense.unused));
  if (expense.unused > 0) whose += fmt::format(", {} of them idle", grouped(expense.unused));
  page.heading("Cost", whose + fmt::format(", PUE {:.3g}", expense.pue));
  TextTable table({"<", ">", ">", ">", "<"});
  add_bill(table, expense, "a step", 1, "");
  if (prediction.training) {
    const sim::Training& training = *prediction.training;
    add_bill(table, expense, training.length, training.steps,
             fmt::format("{}, {} to {}", format(prediction.step * training.steps),
                         format(prediction.low * training.steps),
                         format(prediction.high * training.steps)));
  }
  page.table(table);
  if (expense.usd() && *expense.electricity > 0_USD)
    page.remark("USD:",
                fmt::format("{} {}, electricity {}", expense.owned ? "written off" : "rent",
                            percent(*expense.rent / *expense.usd()),
                            percent(*expense.electricity / *expense.usd())),
                Tone::kFaint);
  if (const std::string shares = energy_shares_of(expense); !shares.empty())
    page.remark("Wh:", shares, Tone::kFaint);
  if (!expense.without_rent.empty())
    page.remark("USD:",
                fmt::format("{} without a price; give cluster.rent, or the device's rent",
                            fmt::join(expense.without_rent, ", ")),
                Tone::kFaint);
  if (!expense.without_power.empty())
    page.remark("Wh:",
                fmt::format("{} without power or idle_power; give the device both",
                            fmt::join(expense.without_power, ", ")),
                Tone::kFaint);
  if (expense.energy && !expense.without_host_power.empty())
    page.remark("Wh:",
                fmt::format("hosts of {} are not counted; give their node host_power",
                            fmt::join(expense.without_host_power, ", ")),
                Tone::kFaint);
}

void write_breakdown(Page& page, const sim::Prediction& prediction) {
  constexpr std::size_t kBeside = 40;  // columns of the page that the bar leaves to the rest
  const std::size_t bar_width = page.width() - kBeside;
  TextTable table({"<", ">", ">", ">"});
  page.heading("Where the time goes", "on the device that finishes last");
  const Seconds total = prediction.breakdown.total();
  Seconds before;
  for (const sim::BreakdownPart& part : sim::kBreakdownParts) {
    const Seconds time = prediction.breakdown.*part.time;
    if (time == 0_s) continue;
    const std::string bar = stretch(before / total, (before + time) / total, bar_width);
    table.row(part.label, format(time), percent(time / total), page.toned(bar, Tone::kBar));
    before += time;
  }
  page.table(table);
}

// For a role: its class with the least room, and its devices.
struct RoleMemory {
  std::size_t worst = 0;
  std::int64_t devices = 0;
};

Bytes room_of(const Report& report, std::size_t i) {
  const sim::DeviceClass& one = report.prediction.classes[i];
  return report.capacities[i] - report.prediction.memory_reserve - one.memory.peak;
}

std::vector<RoleMemory> memory_of_roles(const Report& report) {
  const auto& classes = report.prediction.classes;
  const auto room = [&](std::size_t i) { return room_of(report, i); };
  std::map<std::string, std::size_t> position;
  std::vector<RoleMemory> roles;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto [found, added] = position.emplace(classes[i].role, roles.size());
    if (added) roles.push_back({.worst = i});
    RoleMemory& role = roles[found->second];
    role.devices += classes[i].count;
    if (room(i) < room(role.worst)) role.worst = i;
  }
  return roles;
}

// "80.0 GiB", or "40.0 GiB to 80.0 GiB" if devices differ.
std::string capacities_text(const Report& report) {
  const auto [least, most] = std::ranges::minmax(report.capacities);
  return least == most ? format(least) : fmt::format("{} to {}", format(least), format(most));
}

void write_memory(Page& page, const Report& report) {
  constexpr std::size_t kBeside = 56;  // columns of the page that the bar leaves to the rest
  const std::size_t bar_width = page.width() - kBeside;
  const auto& classes = report.prediction.classes;
  if (classes.empty()) return;
  page.heading("Memory", fmt::format("{} per device, {} reserved", capacities_text(report),
                                     format(report.prediction.memory_reserve)));
  TextTable table({"<role", ">devices", ">peak", ">headroom", ">", ">"});
  std::vector<RoleMemory> roles = memory_of_roles(report);
  const auto all = std::ssize(roles);
  if (roles.size() > kMostRows) {
    // The roles with the fullest memory, then sorted by rank again.
    const auto use = [&](const RoleMemory& role) {
      return classes[role.worst].memory.peak / report.capacities[role.worst];
    };
    std::ranges::stable_sort(roles, [&](const auto& a, const auto& b) { return use(a) > use(b); });
    roles.resize(kMostRows);
    std::ranges::stable_sort(roles, [](const auto& a, const auto& b) { return a.worst < b.worst; });
  }
  for (const RoleMemory& role : roles) {
    const sim::DeviceClass& one = classes[role.worst];
    const Bytes capacity = report.capacities[role.worst];
    const Bytes headroom = room_of(report, role.worst);
    const double use = one.memory.peak / capacity;
    const bool tight = report.margin.is_tight(
        one.memory.peak, capacity - report.prediction.memory_reserve, capacity);
    const Tone tone = headroom < 0_B ? Tone::kBad : tight ? Tone::kWarn : Tone::kBar;
    table.row(one.role, grouped(role.devices), format(one.memory.peak), format(headroom),
              fmt::format("{:.0f} %", 100 * use), page.toned(stretch(0, use, bar_width), tone));
  }
  page.table(table);
  page.more(all - std::ssize(roles), "with more headroom");
  if (is_tight(report))
    page.remark("!",
                fmt::format("tight: it leaves less than the margin of {:.3g} % of a device's "
                            "memory ({})",
                            100 * report.margin.part, report.margin.source),
                Tone::kWarn);
  const auto& worst = classes[static_cast<std::size_t>(report.prediction.worst_memory)];
  std::string parts;
  for (std::size_t kind = 0; kind < sim::kMemoryParts.size(); ++kind) {
    if (worst.memory.by_kind[kind] == 0_B) continue;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", sim::kMemoryParts[kind],
                         format(worst.memory.by_kind[kind]));
  }
  page.remark(fmt::format("{} at its peak:", worst.role), parts, Tone::kFaint);
}

void write_collectives(Page& page, const sim::Prediction& prediction) {
  if (prediction.collectives.empty()) return;
  page.heading("Communication", "each alone on idle links");
  TextTable table({"<operation", "<how", ">size", ">times", ">each"});
  for (const sim::CollectiveUse& use : prediction.collectives)
    table.row(use.what, use.algorithm + (use.protocol.empty() ? "" : " ") + use.protocol,
              format(use.bytes), grouped(use.operations), format(use.idle_time));
  page.table(std::move(table), kMostRows, "(--format json lists all)");
}

void write_critical_path(Page& page, const Report& report) {
  if (report.critical.empty()) return;
  page.heading(
      "Critical path",
      fmt::format("{} {}",
                  grouped(static_cast<std::int64_t>(report.prediction.critical_path.size())),
                  plural(std::ssize(report.prediction.critical_path), "task")));
  TextTable table({"<", ">", ">", ">"});
  Seconds shown;
  const std::size_t rows = std::min(kMostShares, report.critical.size());
  for (std::size_t i = 0; i < rows; ++i) {
    const CriticalShare& share = report.critical[i];
    shown += share.time;
    table.row(share.what, grouped(share.tasks), format(share.time),
              percent(share.time / report.prediction.step));
  }
  const Seconds rest = report.prediction.step - shown;
  if (report.critical.size() > rows)
    table.row("everything else, and waiting", "", format(rest),
              percent(rest / report.prediction.step));
  page.table(table);
}

void write_misfit(Page& page, const Report& report) {
  const sim::Prediction& prediction = report.prediction;
  if (prediction.fits || prediction.classes.empty()) return;
  if (report.alternatives.empty()) return;
  page.heading("What would fit", "on the same cluster");
  const auto fitting =
      std::ranges::count_if(report.alternatives, [](const auto& one) { return one.fits; });
  page.line(fitting > 0 ? "  Changes that were tried (--set strategy.KEY=VALUE):"
                        : "  None of the changes that were tried fits either:");
  TextTable table({"<", "<", ">", ">"});
  for (const study::Alternative& one : report.alternatives)
    table.row(one.fits ? page.toned("✓", Tone::kGood) : page.toned("✗", Tone::kBad), one.change,
              format(one.peak), one.fits ? "step " + format(one.step) : "too much");
  page.table(table);
}

void write_warnings(Page& page, const sim::Prediction& prediction) {
  if (prediction.warnings.empty()) return;
  page.heading("Worth knowing");
  for (const sim::Warning& warning : prediction.warnings)
    page.remark("!", warning.message, Tone::kWarn);
}

void write_foot(Page& page, const Report& report) {
  const sim::Prediction& prediction = report.prediction;
  page.line();
  std::string text = fmt::format(
      "{} {} of {} {}, simulated as {} of {} {} by {} ({}).", grouped(prediction.total_tasks),
      plural(prediction.total_tasks, "task"), grouped(prediction.devices),
      plural(prediction.devices, "device"), grouped(prediction.tasks), prediction.classes.size(),
      plural(std::ssize(prediction.classes), "class"), prediction.engine, prediction.granularity);
  if (prediction.folding == "none" && !prediction.folding_reason.empty())
    text += fmt::format(" Not folded: {}.", prediction.folding_reason);
  if (report.wall) text += fmt::format(" It took {}.", format(*report.wall));
  for (const std::string& part : wrapped(text, page.width()))
    page.line(page.toned(part, Tone::kFaint));
}

}  // namespace

std::string to_text(const Report& report, const Paper& paper) {
  Page page(paper);
  write_verdict(page, report.prediction);
  write_head(page, report);
  write_misfit(page, report);
  write_result(page, report);
  write_interruption(page, report);
  write_disturbances(page, report);
  write_breakdown(page, report.prediction);
  write_memory(page, report);
  write_expense(page, report.prediction);
  write_collectives(page, report.prediction);
  write_critical_path(page, report);
  if (report.sensitivities) write_sensitivities(page, *report.sensitivities);
  write_warnings(page, report.prediction);
  write_foot(page, report);
  return std::move(page).take();
}

}  // namespace foreshard::report
