// Texts for people about matched traces (samples.h, to_text), which `foreshard calibrate` prints.
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "base/quantity.h"

#include "validate/profile/samples.h"

namespace foreshard::profile {
namespace {

constexpr std::size_t kMostLines = 20;
constexpr std::int64_t kMostCompared = 60;

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

void write_leftovers(Page& page, const std::vector<Leftover>& all, Seconds whole) {
  TextTable table({">", ">", ">", "<"});
  for (std::size_t i = 0; i < std::min(all.size(), kMostLines); ++i)
    table.row(percent(all[i].time / whole), format(all[i].time), fmt::format("{} x", all[i].count),
              fmt::format("{:.90}{}{}", all[i].name, all[i].why.empty() ? "" : ": ", all[i].why));
  if (all.size() > kMostLines) {
    Seconds rest{};
    for (std::size_t i = kMostLines; i < all.size(); ++i) rest += all[i].time;
    table.row(percent(rest / whole), format(rest), "",
              fmt::format("{} more", all.size() - kMostLines));
  }
  page.table(table);
}

}  // namespace

std::string to_text(const program::Program& program, const Trace& trace, const Match& match,
                    const Paper& paper) {
  Page page(paper);
  const Seconds whole = trace.gpu_time();
  const auto share = [&](MatchedBy by) { return percent(match.time_of(trace, by) / whole); };
  page.line(fmt::format(
      "{} kernels{}, {} of GPU time on {}, {} {}\n"
      "matched to tasks: {} of the GPU time ({} by shape, {} by kind and order, {} by place)",
      trace.kernels.size(),
      trace.earlier > 0 ? fmt::format(" ({} more were launched before it began)", trace.earlier)
                        : "",
      format(whole), trace.device.empty() ? "a GPU" : trace.device, match.steps,
      match.steps == 1 ? "step" : "steps", percent(match.share(trace)), share(MatchedBy::kShape),
      share(MatchedBy::kOrder), share(MatchedBy::kPlace)));
  if (const auto kernels = unmatched_kernels(trace, match); !kernels.empty()) {
    page.line("\nkernels without a task");
    write_leftovers(page, kernels, whole);
  }
  if (const auto tasks = unmatched_tasks(program, match); !tasks.empty()) {
    page.line("\ntasks without a kernel (times are the model's)");
    write_leftovers(page, tasks, whole);
  }
  return std::move(page).take();
}

std::string to_text(const program::Program& program, const std::vector<ProfiledRank>& ranks,
                    const Paper& paper) {
  Page page(paper);
  TextTable table({"<what took how long", ">times", ">measured", ">the model"});
  for (const auto& one : compared(program, ranks))
    table.row(one.what, one.count, format(one.measured), format(one.expected));
  page.table(std::move(table), kMostCompared, "");
  if (const auto host = host_numbers(ranks))
    page.line(fmt::format(
        "\nhost: {} launches, {} each ({} .. {}), {} from one to the next in the mean, {} in the "
        "middle ({} .. {}); {} for a task of the Program",
        host->launches, format(host->call.median), format(host->call.low), format(host->call.high),
        format(host->mean_interval), format(host->interval.median), format(host->interval.low),
        format(host->interval.high), format(host->per_task)));
  const HeldOutLayers held_out = held_out_layers(program, ranks);
  if (held_out.layers > 0)
    page.line(fmt::format(
        "\nhalf of the {} layers from the other half: {} predicted of {} GPU time ({:+.1f} %), {} "
        "of {} ({:+.1f} %)",
        held_out.layers, format(held_out.predicted[0]), format(held_out.measured[0]),
        100 * (held_out.predicted[0] / held_out.measured[0] - 1), format(held_out.predicted[1]),
        format(held_out.measured[1]), 100 * (held_out.predicted[1] / held_out.measured[1] - 1)));
  return std::move(page).take();
}

}  // namespace foreshard::profile
