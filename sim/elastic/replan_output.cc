// The result of `foreshard replan` as JSON and as text.
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>

#include "base/grouped.h"
#include "base/quantity.h"
#include "base/text.h"

#include "sim/elastic/internal/words.h"
#include "sim/elastic/replan.h"
#include "sim/search/space.h"

namespace foreshard::elastic {
namespace {

using Json = nlohmann::ordered_json;
using internal::known;
using internal::shown;

Json json_of(const Running& running) {
  return {{"strategy", search::knobs_of(running.strategy)},
          {"words", search::in_words(running.strategy)},
          {"use", running.use},
          {"devices", running.strategy.devices()},
          {"idle_devices", running.idle},
          {"step_s", running.step.in_base()},
          {"low_s", running.low.in_base()},
          {"high_s", running.high.in_base()},
          {"evidence", study::evidence_json(running.unmeasured)},
          {"peak_bytes", internal::whole(running.peak)},
          {"headroom_bytes", internal::whole(running.capacity - running.peak)},
          {"tight", running.tight}};
}

std::string line_of(std::string_view label, const Running& running, const std::string& more) {
  return fmt::format("  {:<10}{}\n            step {} ({} to {}){}, {} {}{}, headroom {}{}\n",
                     label, search::in_words(running.strategy), format(running.step),
                     format(running.low), format(running.high), more,
                     grouped(running.strategy.devices()),
                     plural(running.strategy.devices(), "device"),
                     running.idle > 0 ? fmt::format(" and {} idle", grouped(running.idle)) : "",
                     format(running.capacity - running.peak), running.tight ? " (TIGHT)" : "");
}

std::string change_text(const Replan& result) {
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t count, std::string_view what) {
    if (count > 0)
      parts.push_back(fmt::format("{} {} {}", grouped(count), plural(count, "device"), what));
  };
  add(std::ssize(result.failed), "failed (" + describe_ranks(result.failed) + ")");
  add(result.removed, "removed");
  add(result.added, "added");
  return parts.empty() ? "no device changes" : join(parts);
}

std::string chosen_text(const Replan& result) {
  if (result.kept) return ", the old strategy";
  if (result.partial) return ", the best so far";
  return result.certified ? ", certified" : ", by search";
}

std::string slices_text(const Replan& result) {
  if (result.move)
    return fmt::format(
        "  slices    {} between {} {} of devices, {}; nothing is lost\n", format(result.bytes()),
        grouped(std::ssize(result.move->conversion.transfers)),
        plural(std::ssize(result.move->conversion.transfers), "pair"), shown(result.slices()));
  return fmt::format(
      "  slices    {} of {} are lost with what failed: all ranks go back to the last\n"
      "            checkpoint and read {}, {}\n",
      format(result.lost), format(result.checkpoint), format(result.read), shown(result.slices()));
}

std::string stall_text(const Replan& result) {
  std::string text = fmt::format("  stands    {}: ", shown(result.stall()));
  if (!result.failed.empty()) text += fmt::format("detection {}, ", shown(result.costs.detection));
  text +=
      fmt::format("restart {}, slices {}\n", shown(result.costs.restart), shown(result.slices()));
  if (result.stall()) return text;
  std::vector<std::string> missing;
  if (!result.failed.empty() && !result.costs.detection) missing.emplace_back("--detection");
  if (!result.costs.restart) missing.emplace_back("--restart");
  if (!result.slices()) missing.emplace_back("--storage");
  return text + fmt::format("            UNKNOWN: no study tells it; give {}\n", join(missing));
}

}  // namespace

std::string replan_json(const Replan& result) {
  return Json{{"schema", "foreshard.replan/1"},
              {"model", result.model},
              {"cluster_before", result.cluster_before},
              {"cluster_after", result.cluster_after},
              {"failed", result.failed},
              {"removed", result.removed},
              {"added", result.added},
              {"before", json_of(result.before)},
              {"after", json_of(result.after)},
              {"intervals_overlap",
               result.before.low <= result.after.high && result.after.low <= result.before.high},
              {"kept", result.kept},
              {"not_kept", result.not_kept},
              {"certified", result.certified},
              {"partial", result.partial},
              {"from_checkpoint", !result.move.has_value()},
              {"bytes", internal::whole(result.bytes())},
              {"lost_bytes", internal::whole(result.lost)},
              {"checkpoint_bytes", internal::whole(result.checkpoint)},
              {"slices_s", known(result.slices())},
              {"detection_s", known(result.costs.detection)},
              {"restart_s", known(result.costs.restart)},
              {"stall_s", known(result.stall())}}
             .dump(2) +
         "\n";
}

std::string replan_text(const Replan& result) {
  const std::array<const study::Unmeasured*, 2> both{&result.before.unmeasured,
                                                     &result.after.unmeasured};
  std::string text = study::evidence_text(both, "step");
  text += fmt::format("{}: {}\n\n", result.model, change_text(result));
  if (result.after.tight)
    text += "  TIGHT: the strategy afterwards leaves less than the study's memory margin\n";
  text += line_of("before", result.before, "");
  text += line_of("after", result.after,
                  fmt::format(" ({:+.1f} %){}", 100 * (result.after.step / result.before.step - 1),
                              chosen_text(result)));
  if (result.before.low <= result.after.high && result.after.low <= result.before.high)
    text +=
        "            the intervals of the two steps overlap: a machine may order them otherwise\n";
  if (!result.not_kept.empty())
    text += fmt::format("  the old strategy is not kept: {}\n", result.not_kept);
  if (!result.after.use.empty())
    text += fmt::format("  ranks run on {} alone\n", join(result.after.use));
  text += slices_text(result);
  return text + stall_text(result);
}

}  // namespace foreshard::elastic
