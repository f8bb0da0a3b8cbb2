// Texts for people about matched traces (samples.h, to_text), which `foreshard calibrate` prints.
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "base/quantity.h"

#include "validate/profile/samples.h"

namespace foreshard::profile {
namespace {

constexpr std::size_t kMostLines = 20;
constexpr std::size_t kMostCompared = 60;

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string lines_of(const std::vector<Leftover>& all, Seconds whole) {
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kMostLines); ++i)
    text += fmt::format("  {:>7} {:>10} {:>6} x  {:.90}{}{}\n", percent(all[i].time / whole),
                        format(all[i].time), all[i].count, all[i].name,
                        all[i].why.empty() ? "" : ": ", all[i].why);
  if (all.size() > kMostLines) {
    Seconds rest{};
    for (std::size_t i = kMostLines; i < all.size(); ++i) rest += all[i].time;
    text += fmt::format("  {:>7} {:>10}           {} more\n", percent(rest / whole), format(rest),
                        all.size() - kMostLines);
  }
  return text;
}

}  // namespace

std::string to_text(const program::Program& program, const Trace& trace, const Match& match) {
  const Seconds whole = trace.gpu_time();
  const auto share = [&](MatchedBy by) { return percent(match.time_of(trace, by) / whole); };
  std::string text = fmt::format(
      "{} kernels{}, {} of GPU time on {}, {} {}\n"
      "matched to tasks: {} of the GPU time ({} by shape, {} by kind and order, {} by place)\n",
      trace.kernels.size(),
      trace.earlier > 0 ? fmt::format(" ({} more were launched before it began)", trace.earlier)
                        : "",
      format(whole), trace.device.empty() ? "a GPU" : trace.device, match.steps,
      match.steps == 1 ? "step" : "steps", percent(match.share(trace)), share(MatchedBy::kShape),
      share(MatchedBy::kOrder), share(MatchedBy::kPlace));
  if (const auto kernels = unmatched_kernels(trace, match); !kernels.empty())
    text += "\nkernels without a task\n" + lines_of(kernels, whole);
  if (const auto tasks = unmatched_tasks(program, match); !tasks.empty())
    text += "\ntasks without a kernel (times are the model's)\n" + lines_of(tasks, whole);
  return text;
}

std::string to_text(const program::Program& program, const std::vector<ProfiledRank>& ranks) {
  std::string text = fmt::format("{:<66} {:>6} {:>10} {:>10}\n", "what took how long", "times",
                                 "measured", "the model");
  const auto all = compared(program, ranks);
  for (std::size_t i = 0; i < std::min(all.size(), kMostCompared); ++i)
    text += fmt::format("  {:<64.64} {:>6} {:>10} {:>10}\n", all[i].what, all[i].count,
                        format(all[i].measured), format(all[i].expected));
  if (all.size() > kMostCompared) text += fmt::format("  {} more\n", all.size() - kMostCompared);
  if (const auto host = host_numbers(ranks))
    text += fmt::format(
        "\nhost: {} launches, {} each ({} .. {}), {} from one to the next in the mean, {} in the "
        "middle ({} .. {}); {} for a task of the Program\n",
        host->launches, format(host->call.median), format(host->call.low), format(host->call.high),
        format(host->mean_interval), format(host->interval.median), format(host->interval.low),
        format(host->interval.high), format(host->per_task));
  const HeldOutLayers held_out = held_out_layers(program, ranks);
  if (held_out.layers > 0)
    text += fmt::format(
        "\nhalf of the {} layers from the other half: {} predicted of {} GPU time ({:+.1f} %), {} "
        "of {} ({:+.1f} %)\n",
        held_out.layers, format(held_out.predicted[0]), format(held_out.measured[0]),
        100 * (held_out.predicted[0] / held_out.measured[0] - 1), format(held_out.predicted[1]),
        format(held_out.measured[1]), 100 * (held_out.predicted[1] / held_out.measured[1] - 1));
  return text;
}

}  // namespace foreshard::profile
