// The result of `foreshard replan` as JSON and as text.
#include <array>
#include <fmt/format.h>
#include <string>

#include "base/grouped.h"
#include "base/quantity.h"
#include "base/record/record.h"
#include "base/text.h"

#include "sim/elastic/internal/words.h"
#include "sim/elastic/replan.h"
#include "sim/search/output.h"
#include "sim/search/space.h"
#include "sim/study/records.h"

namespace foreshard::elastic {
namespace {

using internal::shown;
using record::Record;

// Whether a machine may order the two steps otherwise.
bool intervals_overlap(const Replan& result) {
  return result.before.low <= result.after.high && result.after.low <= result.before.high;
}

// The strategy, and below it its figures.
std::string words_of(const Running& running, const std::string& more) {
  return fmt::format("{}\nstep {} ({}){}, {} {}{}, headroom {}{}",
                     search::in_words(running.strategy), format(running.step),
                     search::interval_text(running), more, grouped(running.strategy.devices()),
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
    return fmt::format("{} between {} {} of devices, {}; nothing is lost", format(result.bytes()),
                       grouped(std::ssize(result.move->conversion.transfers)),
                       plural(std::ssize(result.move->conversion.transfers), "pair"),
                       shown(result.slices()));
  return fmt::format(
      "{} of {} are lost with what failed: all ranks go back to the last checkpoint and read {}, "
      "{}",
      format(result.lost), format(result.checkpoint), format(result.read), shown(result.slices()));
}

std::string stall_text(const Replan& result) {
  std::string text = shown(result.stall()) + ": ";
  if (!result.failed.empty()) text += fmt::format("detection {}, ", shown(result.costs.detection));
  text += fmt::format("restart {}, slices {}", shown(result.costs.restart), shown(result.slices()));
  if (result.stall()) return text;
  std::vector<std::string> missing;
  if (!result.failed.empty() && !result.costs.detection) missing.emplace_back("--detection");
  if (!result.costs.restart) missing.emplace_back("--restart");
  if (!result.slices()) missing.emplace_back("--storage");
  return text + fmt::format("\nUNKNOWN: no study tells it; give {}", join(missing));
}

}  // namespace

const Record<Running>& record_of(const Running*) {
  static const auto record =
      Record<Running>("running", "A strategy that runs on a cluster.")
          .field("strategy", &Running::strategy)
          .field("words", record::at<&Running::strategy, search::in_words>)
          .field("use", &Running::use)
          .field("devices", record::at<&Running::strategy, &Strategy::devices>)
          .field("idle_devices", &Running::idle)
          .field("step_s", &Running::step)
          .field("low_s", &Running::low)
          .field("high_s", &Running::high)
          .field("evidence", &Running::unmeasured)
          .field("peak_bytes", &Running::peak)
          .field("headroom_bytes", [](const Running& of) { return of.capacity - of.peak; })
          .field("tight", &Running::tight, "It leaves less than the study's memory margin.");
  return record;
}

const Record<Replan>& record_of(const Replan*) {
  static const auto record =
      Record<Replan>::result("foreshard.replan/1",
                             "What one change of a cluster takes (docs/elastic.md).")
          .field("model", &Replan::model)
          .field("cluster_before", &Replan::cluster_before)
          .field("cluster_after", &Replan::cluster_after)
          .field("failed", &Replan::failed, "Devices that worked before and are down afterwards.")
          .field("removed", &Replan::removed)
          .field("added", &Replan::added)
          .field("before", &Replan::before)
          .field("after", &Replan::after)
          .field("intervals_overlap", intervals_overlap, "Their order is uncertain.")
          .field("kept", &Replan::kept, "Whether the strategy is the old one.")
          .field("not_kept", &Replan::not_kept, "Why it is not, if that was requested.")
          .field("certified", &Replan::certified, search::kCertified)
          .field("partial", &Replan::partial, "Whether an interrupt ended the search.")
          .field("from_checkpoint", [](const Replan& of) { return !of.move; })
          .field("bytes", &Replan::bytes, "They move, or are read from the checkpoint.")
          .field("lost_bytes", &Replan::lost, "Bytes of which no device has a copy.")
          .field("checkpoint_bytes", &Replan::checkpoint, "Each element once.")
          .field("slices_s", &Replan::slices, "Time of the move, or of the read.")
          .field("detection_s", record::at<&Replan::costs, &RestartCosts::detection>)
          .field("restart_s", record::at<&Replan::costs, &RestartCosts::restart>)
          .field("stall_s", &Replan::stall, "Whole time of standstill; null: unknown.");
  return record;
}

std::string replan_json(const Replan& result) {
  return record::text_of(record::write(result), 2);
}

std::string replan_text(const Replan& result, const Paper& paper) {
  const std::array<const study::Unmeasured*, 2> both{&result.before.unmeasured,
                                                     &result.after.unmeasured};
  Page page(paper);
  page.add(study::evidence_text(both, "step"));
  page.line(fmt::format("{}: {}\n", result.model, change_text(result)));
  if (result.after.tight)
    page.line("  TIGHT: the strategy afterwards leaves less than the study's memory margin");
  TextTable table({"<", "<"});
  table.row("before", words_of(result.before, ""));
  std::string after =
      words_of(result.after,
               fmt::format(" ({:+.1f} %){}", 100 * (result.after.step / result.before.step - 1),
                           chosen_text(result)));
  if (intervals_overlap(result))
    after += "\nthe intervals of the two steps overlap: a machine may order them otherwise";
  if (!result.not_kept.empty())
    after += fmt::format("\nthe old strategy is not kept: {}", result.not_kept);
  if (!result.after.use.empty())
    after += fmt::format("\nranks run on {} alone", join(result.after.use));
  table.row("after", after);
  table.row("slices", slices_text(result));
  table.row("stands", stall_text(result));
  page.table(table);
  return std::move(page).take();
}

}  // namespace foreshard::elastic
