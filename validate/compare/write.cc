#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "base/gzip/gzip.h"
#include "base/quantity.h"
#include "base/record/record.h"

#include "strategies/program/ir/program.h"
#include "validate/compare/compare.h"
#include "validate/compare/timeline.h"

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

void write_head(Page& page, const Comparison& of) {
  page.line(fmt::format("{}\npredicted on {}; measured by {} replay, {} {} repeats{}\n", of.program,
                        of.cluster, of.backend,
                        of.mode == Mode::kWhole
                            ? fmt::format("{} ranks,", of.ranks)
                            : fmt::format("rank {} alone,", of.per_rank[0].rank),
                        of.repeats, of.date.empty() ? "" : ", " + of.date));
  page.line(fmt::format(
      "step   predicted {}   measured {}   error {}   (measured 10 % to 90 %: {} to {}, spread {})",
      format(of.step.predicted), format(of.step.measured), percent(of.step.error()), format(of.low),
      format(of.high), share(of.spread)));
}

void write_rows(Page& page, const std::vector<const Row*>& rows, const std::string& title) {
  TextTable table({"<" + title, ">count", ">predicted", ">measured", ">error", ">spread",
                   ">of step", ">of error"});
  for (const Row* row : rows) {
    const bool timed = row->count > 0;
    const Pair& shown = timed ? row->each : row->booked;
    table.row(row->name, timed ? fmt::format("{}", row->count) : "", time(shown.predicted),
              time(shown.measured), timed ? percent(shown.error()) : "",
              timed ? share(row->spread) : "", share(row->share_of_step),
              percent(row->share_of_error));
  }
  page.table(table);
}

void write_overlap(Page& page, const Comparison& of) {
  TextTable table({"<Streams and overlap (mean of ranks)", ">predicted", ">measured", ">error"});
  const auto add = [&](const std::string& name, const Pair& pair) {
    table.row(name, time(pair.predicted), time(pair.measured), percent(pair.error()));
  };
  for (const StreamRow& stream : of.streams) add("stream " + stream.name, stream.busy);
  add("computing", of.overlap.computing);
  if (of.mode != Mode::kOneRank) {
    add("communicating", of.overlap.communicating);
    add("  hidden beside kernels", of.overlap.hidden);
    for (std::size_t p = 0; p < of.overlap.exposed.size(); ++p) {
      const Pair& pair = of.overlap.exposed[p];
      if (pair.predicted > 0_s || pair.measured > 0_s)
        add(fmt::format("  exposed, {}", program::name_of(static_cast<program::Purpose>(p))), pair);
    }
  }
  page.table(table);
}

void write_ranks(Page& page, const Comparison& of) {
  std::vector<const RankRow*> rows;
  for (const RankRow& row : of.per_rank) rows.push_back(&row);
  const auto off = [](const RankRow* row) { return std::abs(row->finish.error().value_or(0)); };
  page.line();
  if (rows.size() > kMostRanks) {
    std::ranges::stable_sort(rows,
                             [&](const RankRow* a, const RankRow* b) { return off(a) > off(b); });
    page.line(fmt::format("(the {} with the largest error of {})", kMostRanks, rows.size()));
    rows.resize(kMostRanks);
  }
  TextTable table({"<rank", ">finish", ">measured", ">error", ">peak memory", ">measured"});
  for (const RankRow* row : rows)
    table.row(row->rank, format(row->finish.predicted), format(row->finish.measured),
              percent(row->finish.error()), format(row->predicted_peak),
              format(row->measured_peak));
  page.table(table);
}

}  // namespace

std::string percent(const std::optional<double>& part) {
  return part ? fmt::format("{:+.1f} %", 100 * *part) : "-";
}

std::string to_text(const Comparison& of, std::size_t residuals, const Paper& paper) {
  Page page(paper);
  write_head(page, of);
  for (const std::string& remark : of.remarks) page.line("note: " + remark);

  std::vector<const Row*> rows;
  for (const Row& row : of.kinds)
    if (std::max({std::abs(row.booked.measured.in_base()), row.booked.predicted.in_base(),
                  row.time.measured.in_base()}) >= kMatters * of.step.measured.in_base())
      rows.push_back(&row);
  write_rows(page, rows, "Kinds (one instance)");

  rows.clear();
  for (const Row& row : of.residuals)
    if (rows.size() < residuals && row.booked.predicted != row.booked.measured)
      rows.push_back(&row);
  write_rows(page, rows, "Largest residuals");

  write_overlap(page, of);
  write_ranks(page, of);
  if (of.slack)
    page.line(fmt::format(
        "\n{} communications: the rank waited for {} of them, {} in all; least slack {}",
        of.slack->communications, of.slack->late, time(of.slack->waited), time(of.slack->least)));
  return std::move(page).take();
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

namespace {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The host is thread 0, stream s is thread s + 1.
int thread_of(std::int32_t stream) {
  return stream < 0 ? 0 : stream + 1;
}

class Writer {
 public:
  explicit Writer(const program::Program& program) : program_(program) {}

  void add(const RankTimes& rank, const program::Expansion& expansion,
           const std::vector<Times>& times, std::string_view side, int process) {
    metadata(process, 0, "process_name",
             fmt::format("{{\"name\":{}}}", json_text(fmt::format("rank {} {}", rank.rank, side))));
    metadata(process, 0, "process_sort_index", fmt::format("{{\"sort_index\":{}}}", process));
    std::set<int> threads;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const program::Instance& instance = expansion.instances[i];
      if (threads.insert(thread_of(instance.stream)).second)
        metadata(
            process, thread_of(instance.stream), "thread_name",
            fmt::format(
                "{{\"name\":{}}}",
                json_text(instance.stream < 0
                              ? "host"
                              : program_.streams[static_cast<std::size_t>(instance.stream)].name)));
      const program::Role& role = program_.roles[rank.role];
      const program::Task& task = program::task_of(program_, role, instance);
      const program::Call& call = role.calls[static_cast<std::size_t>(instance.call)];
      const std::string args =
          fmt::format("{{\"block\":{},\"layer\":{},\"micro_batch\":{},\"instance\":{}}}",
                      json_text(program_.blocks[call.block.index()].name),
                      call.layer(instance.iteration), call.micro_batch, i);
      const int thread = thread_of(instance.stream);
      if (times[i].reached < times[i].begin)
        event(process, thread, times[i].reached, times[i].begin, "wait: " + task.name, "waiting",
              args);
      event(process, thread, times[i].begin, times[i].finish, task.name, category_of(task), args);
    }
  }

  std::string finish() && { return std::move(out_) + "\n]}\n"; }

 private:
  static std::string_view category_of(const program::Task& task) {
    if (std::holds_alternative<program::Communication>(task.body)) return "communication";
    if (std::holds_alternative<Kernel>(task.body)) return task.optimizer ? "optimizer" : "compute";
    return "host";
  }
  void metadata(int process, int thread, std::string_view what, std::string_view args) {
    next(fmt::format("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{}}}", process,
                     thread, what, args));
  }
  void event(int process, int thread, Seconds begin, Seconds end, const std::string& name,
             std::string_view category, const std::string& args) {
    next(fmt::format(
        "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"name\":"
        "{},\"cat\":\"{}\",\"args\":{}}}",
        process, thread, begin / 1_us, (end - begin) / 1_us, json_text(name), category, args));
  }
  void next(std::string_view event) {
    out_ += std::exchange(first_, false) ? "\n" : ",\n";
    out_ += event;
  }

  const program::Program& program_;
  std::string out_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  bool first_ = true;
};

}  // namespace

Status write_trace(const std::filesystem::path& path, const program::Program& program,
                   const sim::Prediction& prediction, const measure::Measurement& measurement) {
  const Timelines lines = timelines_of(program, prediction, measurement);
  Writer writer(program);
  int process = 0;
  for (const RankTimes& rank : lines.ranks) {
    const program::Expansion& expansion = lines.expansions[rank.role];
    writer.add(rank, expansion, rank.measured, "measured", process++);
    writer.add(rank, expansion, rank.predicted, "predicted", process++);
  }
  FORESHARD_ASSIGN(auto file, NewFileByName::begin(path));
  FORESHARD_TRY(file.append(std::move(writer).finish()));
  return file.finish();
}

}  // namespace foreshard::compare
