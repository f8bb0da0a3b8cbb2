#include "validate/compare/write.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/quantity.h"
#include "base/record/record.h"

#include "strategies/program/ir/names.h"

namespace foreshard::compare {
namespace {

using measure::Mode;
using record::at;
using record::Record;

constexpr double kMatters = 1e-3;  // share of the step from which a kind is listed
constexpr std::size_t kMostRanks = 16;

std::string share(const std::optional<double>& part) {
  return part ? fmt::format("{:.1f} %", 100 * *part) : "-";
}
std::string time(Seconds value) {
  return value == 0_s ? "-" : format(value);
}

// The name, cut to 40 characters so that columns stay aligned.
std::string cut(const std::string& name) {
  constexpr std::size_t kMost = 40;
  return name.size() <= kMost ? name : name.substr(0, kMost - 3) + "...";
}

void write_head(std::string& out, const Comparison& of) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "{}\n", of.program);
  fmt::format_to(to, "predicted on {}; measured by {} replay, {} {}{}\n\n", of.cluster, of.backend,
                 of.mode == Mode::kWhole ? fmt::format("{} ranks", of.ranks)
                                         : fmt::format("rank {} alone", of.per_rank[0].rank),
                 fmt::format("{} repeats", of.repeats), of.date.empty() ? "" : ", " + of.date);
  fmt::format_to(to,
                 "step   predicted {}   measured {}   error {}   (measured 10 % to 90 %: {} to "
                 "{}, spread {})\n",
                 format(of.step.predicted), format(of.step.measured), percent(of.step.error()),
                 format(of.low), format(of.high), share(of.spread));
}

void write_rows(std::string& out, const std::vector<const Row*>& rows, std::string_view title) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "\n{:<40} {:>6} {:>11} {:>11} {:>9} {:>7} {:>8} {:>9}\n", title, "count",
                 "predicted", "measured", "error", "spread", "of step", "of error");
  for (const Row* row : rows) {
    const bool timed = row->count > 0;
    const Pair& shown = timed ? row->each : row->booked;
    fmt::format_to(to, "{:<40} {:>6} {:>11} {:>11} {:>9} {:>7} {:>8} {:>9}\n", cut(row->name),
                   timed ? fmt::format("{}", row->count) : "", time(shown.predicted),
                   time(shown.measured), timed ? percent(shown.error()) : "",
                   timed ? share(row->spread) : "", share(row->share_of_step),
                   percent(row->share_of_error));
  }
}

void write_pair(std::string& out, const std::string& name, const Pair& pair) {
  fmt::format_to(std::back_inserter(out), "{:<40} {:>6} {:>11} {:>11} {:>9}\n", cut(name), "",
                 time(pair.predicted), time(pair.measured), percent(pair.error()));
}

void write_overlap(std::string& out, const Comparison& of) {
  fmt::format_to(std::back_inserter(out), "\n{:<40} {:>6} {:>11} {:>11} {:>9}\n",
                 "Streams and overlap (mean of ranks)", "", "predicted", "measured", "error");
  for (const StreamRow& stream : of.streams) write_pair(out, "stream " + stream.name, stream.busy);
  write_pair(out, "computing", of.overlap.computing);
  if (of.mode == Mode::kOneRank) return;
  write_pair(out, "communicating", of.overlap.communicating);
  write_pair(out, "  hidden beside kernels", of.overlap.hidden);
  for (std::size_t p = 0; p < of.overlap.exposed.size(); ++p) {
    const Pair& pair = of.overlap.exposed[p];
    if (pair.predicted > 0_s || pair.measured > 0_s)
      write_pair(out,
                 fmt::format("  exposed, {}", program::name_of(static_cast<program::Purpose>(p))),
                 pair);
  }
}

void write_ranks(std::string& out, const Comparison& of) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "\n{:<8} {:>11} {:>11} {:>9} {:>14} {:>14}\n", "rank", "finish", "measured",
                 "error", "peak memory", "measured");
  std::vector<const RankRow*> rows;
  for (const RankRow& row : of.per_rank) rows.push_back(&row);
  const auto off = [](const RankRow* row) { return std::abs(row->finish.error().value_or(0)); };
  if (rows.size() > kMostRanks) {
    std::ranges::stable_sort(rows,
                             [&](const RankRow* a, const RankRow* b) { return off(a) > off(b); });
    fmt::format_to(to, "(the {} with the largest error of {})\n", kMostRanks, rows.size());
    rows.resize(kMostRanks);
  }
  for (const RankRow* row : rows)
    fmt::format_to(to, "{:<8} {:>11} {:>11} {:>9} {:>14} {:>14}\n", row->rank,
                   format(row->finish.predicted), format(row->finish.measured),
                   percent(row->finish.error()), format(row->predicted_peak),
                   format(row->measured_peak));
}

}  // namespace

std::string percent(const std::optional<double>& part) {
  return part ? fmt::format("{:+.1f} %", 100 * *part) : "-";
}

std::string to_text(const Comparison& of, std::size_t residuals) {
  std::string out;
  write_head(out, of);
  for (const std::string& remark : of.remarks) out += "note: " + remark + "\n";

  std::vector<const Row*> rows;
  for (const Row& row : of.kinds)
    if (std::max({std::abs(row.booked.measured.in_base()), row.booked.predicted.in_base(),
                  row.time.measured.in_base()}) >= kMatters * of.step.measured.in_base())
      rows.push_back(&row);
  write_rows(out, rows, "Kinds (one instance)");

  rows.clear();
  for (const Row& row : of.residuals)
    if (rows.size() < residuals && row.booked.predicted != row.booked.measured)
      rows.push_back(&row);
  write_rows(out, rows, "Largest residuals");

  write_overlap(out, of);
  write_ranks(out, of);
  if (of.slack)
    fmt::format_to(std::back_inserter(out),
                   "\n{} communications: the rank waited for {} of them, {} in all; least slack "
                   "{}\n",
                   of.slack->communications, of.slack->late, time(of.slack->waited),
                   time(of.slack->least));
  return out;
}

double percentage(double part) {
  return 100 * part;
}

std::optional<double> error_percentage(const Pair& pair) {
  const auto error = pair.error();
  return error ? std::optional(100 * *error) : std::nullopt;
}

const Record<Pair>& record_of(const Pair*) {
  static const auto record = Record<Pair>("pair")
                                 .field("predicted_s", &Pair::predicted)
                                 .field("measured_s", &Pair::measured)
                                 .field("error_pct", error_percentage);
  return record;
}

const Record<Row>& record_of(const Row*) {
  static constexpr std::string_view kKinds[] = {"kernel", "communication", "waiting",
                                                "host",   "idle",          "between_medians"};
  const auto share = [](std::optional<double> Row::*part) {
    return [part](const Row& row) {
      return row.*part ? std::optional(100 * *(row.*part)) : std::nullopt;
    };
  };
  static const auto record =
      Record<Row>("row")
          .field("kind", [](const Row& row) { return kKinds[static_cast<std::size_t>(row.kind)]; })
          .field("name", &Row::name)
          .field("count", &Row::count, "Instances in a step, over all ranks.")
          .field("each", &Row::each, "One instance.")
          .field("per_rank", &Row::time, "Sum of a rank's instances, as the mean of the ranks.")
          .field("booked", &Row::booked, "Time that nothing else accounts for.")
          .field("spread_pct", at<&Row::spread, &percentage>)
          .field("share_of_step_pct", share(&Row::share_of_step))
          .field("share_of_error_pct", share(&Row::share_of_error));
  return record;
}

const Record<StreamRow>& record_of(const StreamRow*) {
  static const auto record =
      Record<StreamRow>("stream").field("name", &StreamRow::name).field("busy", &StreamRow::busy);
  return record;
}

const Record<RankRow>& record_of(const RankRow*) {
  static const auto record =
      Record<RankRow>("rank")
          .field("rank", &RankRow::rank)
          .field("finish", &RankRow::finish)
          .group("peak_memory", Record<RankRow>()
                                    .field("predicted_bytes", &RankRow::predicted_peak)
                                    .field("measured_bytes", &RankRow::measured_peak));
  return record;
}

const Record<Overlap>& record_of(const Overlap*) {
  static const auto record =
      Record<Overlap>("overlap")
          .field("computing", &Overlap::computing)
          .field("communicating", &Overlap::communicating)
          .field("hidden", &Overlap::hidden, "Communication beside kernels.")
          .field(
              "exposed",
              [](const Overlap& overlap) {
                std::vector<std::pair<std::string, Pair>> exposed;
                for (std::size_t p = 0; p < overlap.exposed.size(); ++p)
                  exposed.emplace_back(program::name_of(static_cast<program::Purpose>(p)),
                                       overlap.exposed[p]);
                return exposed;
              },
              "Other communication, by its purpose.");
  return record;
}

const Record<Slack>& record_of(const Slack*) {
  static const auto record =
      Record<Slack>("slack", "How early results were there when one rank alone needed them.")
          .field("communications", &Slack::communications)
          .field("late", &Slack::late, "Communications for which the rank waited.")
          .field("waited_s", &Slack::waited)
          .field("least_s", &Slack::least, "Negative: the longest wait.");
  return record;
}

const Record<Comparison>& record_of(const Comparison*) {
  using Of = Comparison;
  static const auto record =
      Record<Of>::result("foreshard.comparison/1",
                         "A prediction beside the measurement of a replay, as `compare` writes it "
                         "(docs/validation.md).")
          .field("program", &Of::program)
          .field("cluster", &Of::cluster)
          .field("fingerprint", &Of::fingerprint, "The Program's.")
          .field("backend", &Of::backend)
          .field("date", &Of::date)
          .field("mode", &Of::mode)
          .field("ranks", &Of::ranks)
          .field("repeats", &Of::repeats)
          .group("step", Record<Of>()
                             .field("predicted_s", at<&Of::step, &Pair::predicted>)
                             .field("measured_s", at<&Of::step, &Pair::measured>)
                             .field("error_pct", at<&Of::step, &error_percentage>)
                             .field("measured_low_s", &Of::low, "10th percentile.")
                             .field("measured_high_s", &Of::high, "90th percentile.")
                             .field("spread_pct", at<&Of::spread, &percentage>))
          .field("kinds", &Of::kinds)
          .field("residuals", &Of::residuals, "Rows of single tasks.")
          .field("streams", &Of::streams)
          .field("overlap", &Of::overlap)
          .field("per_rank", &Of::per_rank)
          .field("slack", &Of::slack)
          .field("remarks", &Of::remarks);
  return record;
}

std::string to_json(const Comparison& of) {
  return record::text_of(record::write(of), 2);
}

}  // namespace foreshard::compare
