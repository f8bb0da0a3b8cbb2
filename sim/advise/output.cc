// Advice as text and as JSON (output.h), for `foreshard advise` and pages of reports.
#include "sim/advise/output.h"

#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/grouped.h"
#include "base/quantity.h"
#include "base/record/record.h"
#include "base/shell_words.h"
#include "base/text.h"

#include "sim/search/output.h"
#include "sim/study/evidence.h"
#include "sim/study/records.h"

namespace foreshard::advise {
namespace {

using record::Json;
using record::Record;

// Nothing for a step that never ends.
template <Seconds Figures::*kTime>
std::optional<Seconds> time_of(const Figures& figures) {
  const Seconds time = figures.*kTime;
  return std::isfinite(time.in_base()) ? std::optional(time) : std::nullopt;
}

// Settings as values of JSON: 4, true, "selective", ["tensor", "data"].
std::map<std::string, Json> settings_of(const Change& change) {
  std::map<std::string, Json> settings;
  for (const yaml::Override& one : change.settings) {
    const Json value = Json::parse(one.value, nullptr, /*allow_exceptions=*/false);
    settings[one.path] = value.is_discarded() ? Json(one.value) : value;
  }
  return settings;
}

std::optional<double> percent_of(const Change& change) {
  return change.gain ? std::optional(100 * *change.gain) : std::nullopt;
}

std::string marks_of(const Figures& figures) {
  std::string text = !figures.fits ? " (DOES NOT FIT)" : figures.tight ? " (TIGHT)" : "";
  return text + search::unmeasured_text(" ({})", figures.unmeasured);
}

std::string step_text(const Figures& figures) {
  return time_of<&Figures::step>(figures) ? format(figures.step) : "never ends";
}

void add_row(TextTable& table, std::string_view place, const Figures& figures,
             const std::string& gain) {
  const bool ends = time_of<&Figures::step>(figures).has_value();
  table.row(place, step_text(figures), ends ? search::interval_text(figures) : "", gain,
            format(figures.peak), figures.usd ? fmt::format("{:.3g}", *figures.usd / 1_USD) : "-");
}

void write_changes(Page& page, const Advice& advice, const std::vector<Change>& changes) {
  TextTable table({">", ">step", ">8 of 10 within", ">gain", ">peak memory", ">USD/step"});
  add_row(table, "now", advice.now, "");
  if (const std::string marks = marks_of(advice.now); !marks.empty())
    table.note("as it is" + marks);
  std::int64_t place = 0;
  for (const Change& change : changes) {
    add_row(table, std::to_string(++place), change.after,
            change.gain ? fmt::format("{:.1f} %", 100 * *change.gain) : "");
    table.note(change.words + marks_of(change.after));
    table.note(options_of(change));
  }
  page.table(table);
}

std::string counts_text(const Advice& advice, const Counts& counts) {
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t count, const std::string& what) {
    if (count > 0) parts.push_back(fmt::format("{} {}", grouped(count), what));
  };
  add(counts.faster, advice.now.fits ? "faster" : "that fit");
  add(counts.slower, "no faster");
  add(counts.too_large, fmt::format("without {:.3g} % of the memory left ({})",
                                    100 * advice.memory_margin, advice.margin_source));
  add(counts.framework, fmt::format("that {} has no option for", advice.framework));
  add(counts.impossible, "that model, batch, schedule or devices do not allow");
  add(counts.interrupted, "whose step a failure interrupts");
  add(counts.not_reached, "not simulated");
  return fmt::format("{} {}: {}", grouped(counts.candidates()),
                     plural(counts.candidates(), "candidate"), join(parts));
}

std::string evidence_of(const Advice& advice) {
  std::vector<const study::Unmeasured*> all{&advice.now.unmeasured};
  for (const auto* changes : {&advice.changes, &advice.hardware})
    for (const Change& change : *changes) all.push_back(&change.after.unmeasured);
  return study::evidence_text(all, "step");
}

}  // namespace

const Record<Figures>& record_of(const Figures*) {
  static const auto record =
      Record<Figures>("advised_step", "A simulated step, as `simulate` predicts it.")
          .field("step_s", time_of<&Figures::step>, "Null if a failure ends the step.")
          .field("low_s", time_of<&Figures::low>,
                 "Interval in which 8 of 10 measurements are expected.")
          .field("high_s", time_of<&Figures::high>)
          .field("peak_bytes", &Figures::peak, "Of the device with the least room.")
          .field("headroom_bytes", [](const Figures& of) { return of.capacity - of.peak; })
          .field("fits", &Figures::fits)
          .field("tight", &Figures::tight, "It leaves less than the study's memory margin.")
          .field("usd_per_step", &Figures::usd, "Null: a price is not known.")
          .field("evidence", &Figures::unmeasured);
  return record;
}

const Record<Change>& record_of(const Change*) {
  static const auto record =
      Record<Change>("change", "A single change of the study.")
          .field("idea", &Change::idea)
          .field("words", &Change::words)
          .field("settings", settings_of, "Values by their path, after the study's own.")
          .field("options", options_of, "The same as options of the command line.")
          .field("gain_pct", percent_of, "Part of the study's step that it saves.")
          .field("after", &Change::after);
  return record;
}

const Record<Counts>& record_of(const Counts*) {
  static const auto record =
      Record<Counts>("advice_counts", "What became of the candidates.")
          .field("candidates", &Counts::candidates)
          .field("faster", &Counts::faster, "They fit; if the study does, they are faster.")
          .field("slower", &Counts::slower, "They are no faster.")
          .field("too_large", &Counts::too_large, "They leave less than the memory margin.")
          .field("framework", &Counts::framework, "The framework has no option for them.")
          .field("impossible", &Counts::impossible,
                 "Model, batch, schedule or devices do not allow them.")
          .field("interrupted", &Counts::interrupted, "A failure ends their step.")
          .field("not_reached", &Counts::not_reached);
  return record;
}

const Record<Advice>& record_of(const Advice*) {
  static const auto record =
      Record<Advice>::result("foreshard.advice/1",
                             "The best single changes to a study (docs/advise.md).")
          .field("study", &Advice::study)
          .field("model", &Advice::model)
          .field("cluster", &Advice::cluster)
          .field("strategy", &Advice::strategy)
          .field("framework", &Advice::framework)
          .field("now", &Advice::now)
          .field("changes", &Advice::changes, "On the same machine, the shortest step first.")
          .field("hardware", &Advice::hardware, "Of devices and links, the shortest step first.")
          .field("counts", &Advice::counts)
          .field("hardware_counts", &Advice::hardware_counts)
          .field("memory_margin", &Advice::memory_margin,
                 "The part of each device's memory that stays free.")
          .field("margin_source", &Advice::margin_source)
          .field("partial", &Advice::partial, "Not all candidates were simulated.");
  return record;
}

std::string options_of(const Change& change) {
  std::vector<std::string> options;
  for (const yaml::Override& one : change.settings)
    options.push_back("--set " + shell_word(one.path + "=" + one.value));
  return join(options, " ");
}

std::string advice_json(const Advice& advice) {
  return record::text_of(record::write(advice), 2);
}

std::string advice_text(const Advice& advice, const Paper& paper) {
  Page page(paper);
  page.add(evidence_of(advice));
  page.line(fmt::format("{} on {}, {}", advice.model, advice.cluster, advice.framework));
  page.line(advice.strategy);
  if (!advice.now.fits)
    page.line(fmt::format("It does not fit: it needs {} of the {} that a device has for tensors.",
                          format(advice.now.peak), format(advice.now.capacity)));
  page.heading("Single changes");
  write_changes(page, advice, advice.changes);
  if (advice.changes.empty())
    page.line(advice.now.fits ? "  none of those that were tried is faster and fits"
                              : "  none of those that were tried fits");
  page.line("  " + counts_text(advice, advice.counts));
  if (advice.hardware_counts.candidates() > 0) {
    page.heading("Other hardware", "what it costs to get is not counted");
    write_changes(page, advice, advice.hardware);
    page.line("  " + counts_text(advice, advice.hardware_counts));
  }
  if (advice.partial) page.line("\n  It was stopped before all were simulated.");
  return std::move(page).take();
}

}  // namespace foreshard::advise
