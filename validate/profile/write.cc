#include "validate/profile/write.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "base/quantity.h"

namespace foreshard::profile {
namespace {

constexpr std::size_t kMostLines = 20;

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
      "{} kernels, {} of GPU time on {}, {} {}\n"
      "matched to tasks: {} of the GPU time ({} by shape, {} by kind and order, {} by place)\n",
      trace.kernels.size(), format(whole), trace.device.empty() ? "a GPU" : trace.device,
      match.steps, match.steps == 1 ? "step" : "steps", percent(match.share(trace)),
      share(MatchedBy::kShape), share(MatchedBy::kOrder), share(MatchedBy::kPlace));
  if (const auto kernels = unmatched_kernels(trace, match); !kernels.empty())
    text += "\nkernels without a task\n" + lines_of(kernels, whole);
  if (const auto tasks = unmatched_tasks(program, match); !tasks.empty())
    text += "\ntasks without a kernel (times are the model's)\n" + lines_of(tasks, whole);
  return text;
}

}  // namespace foreshard::profile
