#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/grouped.h"
#include "base/net/identity.h"
#include "base/progress.h"
#include "base/team/team.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/declaration.h"
#include "cli/interruption.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/page/page.h"
#include "sim/simulate/memory_limit.h"
#include "sim/sweep/evaluate.h"
#include "sim/sweep/output.h"
#include "sim/sweep/ranking.h"
#include "sim/sweep/run.h"
#include "sim/sweep/store.h"

namespace foreshard::cli {
namespace {

using Clock = std::chrono::steady_clock;

class StudyCommand final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration_ = declaration;
    declaration.argument("FILE", file_,
                         "A sweep: the file that names a study and its axes, or a catalogue name.");
    declaration.option("--results", "FILE", results_,
                       "Keep each point in this file as soon as it is done, and compute none that "
                       "is there already.");
    declaration.count("--threads", threads_, 1,
                      "Points at the same time; by default the processor's threads, or 1 for each "
                      "rank of mpirun or srun.");
    declaration.option("--shard", "I/N", shard_,
                       "Only every N-th point, from the I-th on: one job of an array.");
    declaration.option("--budget", "TIME", budget_,
                       "Begin no point after this time, for example 60s.");
    declaration.count("--top", top_, 1, "Number of points that the text lists.");
    add_format(declaration, format_, {"text", "json", "csv", "markdown"});
    add_output(declaration, output_);
    Declaration exported = declaration.subcommand(
        "export", export_, "Write what a results file holds, as the run itself would.",
        "foreshard study export sweep.db --format csv -o sweep.csv");
    exported.required_argument("RESULTS", results_to_export_, "The file that --results named.");
    Declaration merge = declaration.subcommand(
        "merge", merge_, "Put the results of several --shard runs into one file.",
        "foreshard study merge 1.db 2.db -o all.db");
    merge.arguments("RESULTS", results_to_merge_, "The files that --results named.");
  }

  Result<ExitCode> run(const Environment& environment) override {
    if (export_) return exported();
    if (merge_) return merged();
    if (file_.empty()) return fail("a sweep is missing", "for example: foreshard study sweep.yaml");
    return swept(environment);
  }

 private:
  static void note_all(const std::vector<std::string>& remarks) {
    for (const std::string& remark : remarks) note(remark);
  }

  // Refuses options that are not in `allowed`, because they would have no effect.
  Status refuse_others(const std::string& command, const std::vector<std::string>& allowed) const {
    if (!file_.empty())
      return Error{
          Error::Code::kInvalidInput,
          fmt::format("study {}: takes no sweep, but '{}' is given; leave it out", command, file_)};
    for (const std::string& option : declaration_->given())
      if (std::ranges::find(allowed, option) == allowed.end())
        return Error{
            Error::Code::kInvalidInput,
            fmt::format("study {}: {} has no effect there; leave it out", command, option)};
    return {};
  }

  Status refuse_top() const {
    const auto given = declaration_->given();
    if (format_ == "text" || std::ranges::find(given, "--top") == given.end()) return {};
    return Error{Error::Code::kInvalidInput,
                 fmt::format("--top: {} has all points; leave it out", format_)};
  }

  Result<ExitCode> exported() const {
    FORESHARD_TRY(refuse_top());
    FORESHARD_TRY(refuse_others("export", {"--top", "--format", "--output"}));
    FORESHARD_TRY(refuse_same_place("--output", output_, "study export", results_to_export_));
    std::vector<std::string> remarks;
    FORESHARD_ASSIGN(const sweep::Results results,
                     sweep::read_results(results_to_export_, remarks));
    note_all(remarks);
    return written(results, results.done() < std::ssize(results.outcomes), true);
  }

  Result<ExitCode> merged() const {
    FORESHARD_TRY(refuse_others("merge", {"--output"}));
    if (output_.empty() || output_ == "-")
      return fail("study merge: a results file is no text", "name the new file: -o all.db");
    std::vector<std::string> remarks;
    FORESHARD_TRY(sweep::merge_results({results_to_merge_.begin(), results_to_merge_.end()},
                                       output_, remarks));
    note_all(remarks);
    return kDone;
  }

  Result<ExitCode> swept(const Environment& environment) const {
    FORESHARD_TRY(refuse_top());
    FORESHARD_TRY(refuse_same_place("--output", output_, "--results", results_));
    if (file_ != "-") {
      FORESHARD_TRY(refuse_same_place("--output", output_, "the sweep", file_));
      FORESHARD_TRY(refuse_same_place("--results", results_, "the sweep", file_));
    }
    sweep::RunOptions options;
    if (!shard_.empty()) {
      const auto shard = sweep::parse_shard(shard_);
      if (!shard) return fail("--shard: " + shard.error().message);
      options.shard = *shard;
    }
    FORESHARD_ASSIGN(const auto deadline, deadline_of());
    FORESHARD_ASSIGN(const team::Team team, team::team_of(net::environment(), results_));
    const bool together = team.identity.ranks > 1;
    options.threads = threads(together);
    FORESHARD_ASSIGN(const sweep::Setup setup, setup_of(environment, options.threads, team));
    if (team.identity.rank > 0) return helped(setup, team, options.threads);
    if (together && !results_.empty()) options.team = &team;

    std::optional<sweep::Store> store;
    if (!results_.empty()) {
      std::vector<std::string> remarks;
      FORESHARD_ASSIGN(const std::string work, sweep::common_work(setup));
      FORESHARD_ASSIGN(
          store, sweep::Store::open(results_, sweep::question_of(setup.sweep), work, remarks));
      note_all(remarks);
      if (!together && !store->is_read_only())
        team::remove_rendezvous(team);  // the file is locked, so no other team is at work
      options.store = &*store;
    }
    const bool stored = store && !store->is_read_only();
    const Interruption interruption(stored ? FinishedResults::kStored : FinishedResults::kShown);
    options.out_of_time = [&] {
      return Interruption::asked() || (deadline && Clock::now() > *deadline);
    };
    const bool whole = options.shard.parts == 1;
    FORESHARD_ASSIGN(const sweep::RunResult result, with_progress(setup, std::move(options)));
    if (result.known > 0)
      note(fmt::format("{} of {} points were in {} already", grouped(result.known),
                       grouped(result.known + result.computed + result.repeated), results_));
    return written(result.results, result.partial, whole);
  }

  // Helps rank 0: this is one of several processes that a launcher started.
  Result<ExitCode> helped(const sweep::Setup& setup, const team::Team& team,
                          std::int64_t threads) const {
    if (results_.empty())
      return fail(fmt::format("rank {} of {} ({}) does not know where rank 0 is",
                              team.identity.rank, team.identity.ranks, team.identity.source),
                  "give --results FILE: ranks meet beside it");
    FORESHARD_TRY(sweep::help(setup, team, threads));
    return kDone;
  }

  Result<std::optional<Clock::time_point>> deadline_of() const {
    if (budget_.empty()) return std::optional<Clock::time_point>();
    FORESHARD_ASSIGN(const Seconds budget, parse_time_limit(budget_));
    return std::optional(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                            std::chrono::duration<double>(budget / 1_s)));
  }

  Result<sweep::Setup> setup_of(const Environment& environment, std::int64_t threads,
                                const team::Team& team) const {
    FORESHARD_ASSIGN(auto loaded, sweep::load_sweep(file_, {.catalogue = environment.catalogue}));
    // If there are more threads than points, the searches of the points use them.
    const std::int64_t points = sweep::size_of(sweep::names_of(loaded.sweep));
    return sweep::Setup{.sweep = std::move(loaded),
                        .catalogue = environment.catalogue,
                        .version = version_line(),
                        .search_threads = std::max<std::int64_t>(threads / points, 1),
                        .max_memory = memory_of_one(
                            std::min(threads * (team.one_host ? team.identity.ranks : 1), points))};
  }

  // Free memory divided by the number of points that are simulated at the same time.
  static Bytes memory_of_one(std::int64_t at_once) {
    const auto free = sim::free_memory();
    return free ? *free / static_cast<double>(at_once) : sweep::Setup{}.max_memory;
  }

  // Number of threads. With a launcher the default is 1, because launchers start one rank per
  // processor.
  std::int64_t threads(bool together) const {
    if (threads_ > 0) return threads_;
    return together ? 1 : std::max<std::int64_t>(std::thread::hardware_concurrency(), 1);
  }

  static Result<sweep::RunResult> with_progress(const sweep::Setup& setup,
                                                sweep::RunOptions options) {
    const std::int64_t all = sweep::size_of(sweep::names_of(setup.sweep.sweep));
    const std::int64_t parts = options.shard.parts;
    Progress progress(setup.sweep.sweep.search ? "searching" : "simulating",
                      (all + parts - options.shard.part) / parts);
    options.progress = [&] { progress.tick(); };
    return sweep::run_sweep(setup, options);
  }

  // \param whole  whether the whole grid was asked for; then the verdict decides the exit code.
  Result<ExitCode> written(const sweep::Results& results, bool partial, bool whole) const {
    const sweep::Ranking ranking = sweep::ranking_of(results);
    FORESHARD_ASSIGN(const std::string text, text_of(results, ranking));
    FORESHARD_TRY(write_result(output_, text));
    if (partial) return kPartial;
    if (!whole) return kDone;
    const bool met = !ranking.verdict || !ranking.verdict->met.empty();
    return ranking.ranked.empty() || !met ? kInfeasible : kDone;
  }

  Result<std::string> text_of(const sweep::Results& results, const sweep::Ranking& ranking) const {
    if (format_ == "json") return sweep::sweep_json(results, ranking);
    if (format_ == "csv") return sweep::sweep_csv(results, ranking);
    if (format_ == "markdown") return page::markdown_of(sweep::sweep_json(results, ranking));
    return sweep::sweep_text(results, ranking, top_, paper_for(output_));
  }

  std::optional<Declaration> declaration_;
  std::string file_;
  std::string results_;
  std::int64_t threads_ = 0;
  std::string shard_;
  std::string budget_;
  std::int64_t top_ = 20;
  std::string format_;
  std::string output_;
  bool export_ = false;
  std::string results_to_export_;
  bool merge_ = false;
  std::vector<std::string> results_to_merge_;
};

}  // namespace

std::unique_ptr<Command> make_study() {
  return std::make_unique<StudyCommand>();
}

}  // namespace foreshard::cli
