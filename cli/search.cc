#include "sim/search/search.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/net/identity.h"
#include "base/progress.h"
#include "base/team/team.h"
#include "cli/commands.h"
#include "cli/declaration.h"
#include "cli/interruption.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/page/page.h"
#include "sim/search/graph/output.h"
#include "sim/search/graph/search.h"
#include "sim/search/output.h"
#include "sim/search/team.h"
#include "strategies/parallelism/graphs.h"

namespace foreshard::cli {
namespace {

class Search final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration_ = declaration;
    study_.declare(declaration);
    declaration.option("--space", "FILE", space_,
                       "Which values to try (schema: search): a file or YAML in braces.");
    declaration.flag("--any-framework", any_framework_,
                     "Also try strategies that the study's framework has no options for, such as "
                     "any set of recomputed parts.");
    declaration.option("--rules", "FILE", rules_,
                       "Of a graph: rules to try beside the library's (schema: rules).");
    declaration.count("--level", level_, 0, "How much to try: 0 (little) to 3 (everything).");
    declaration.count("--top", top_, 1, "Number of strategies to list.");
    declaration.count("--simulate", simulate_, 1,
                      "Number of strategies to simulate first, the best by estimate.");
    declaration.count("--certify", certify_, 0,
                      "Most further simulations, of strategies that might still be faster.");
    declaration.count("--front", front_, 0,
                      "Most further simulations, of strategies that trade time for memory or "
                      "money.");
    declaration.count("--threads", threads_, 1,
                      "Simulations at the same time; of each further rank of mpirun or srun 1 by "
                      "default.");
    declaration.option("--budget", "TIME", budget_,
                       "Give the best so far after this time, such as 60s (default: no limit).");
    declaration.option("--why-not", "STRATEGY", why_not_,
                       "Say what ruled such a strategy out: \"tp8 pp4 zero1\".");
    add_format(declaration, format_, {"text", "json", "csv", "markdown"});
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    // Without a rank in the environment, the program was started by a shell, not by a launcher.
    const auto of_launcher = team::team_of(net::environment(), output_);
    const team::Team team = of_launcher ? *of_launcher : team::Team{};
    FORESHARD_ASSIGN(const auto study, study_.load(environment, false));
    for (const std::string& option : declaration_->given())
      if (option == "--why-not" && why_not_.empty())
        return fail("--why-not: no strategy is named; write words such as \"tp8 pp4 zero1\"");
    if (study.graph)
      return team.identity.rank > 0 ? helped(study, team) : of_graph(study, environment);
    if (!rules_.empty()) return fail("--rules: only a study with a graph is split by rules");
    search::SearchOptions options;
    FORESHARD_ASSIGN(options.space, space_of(space_, environment));
    if (level_ > 3) return fail("--level: 0, 1, 2 or 3");
    if (level_ >= 0) options.space.level = level_;
    options.space.any_framework = options.space.any_framework || any_framework_;
    options.simulate = simulate_;
    options.certify = certify_;
    options.threads = threads_;
    options.front = front_;
    options.why_not = why_not_;
    if (!budget_.empty()) {
      FORESHARD_ASSIGN(const Seconds budget, parse_time_limit(budget_));
      options.time_limit = std::chrono::duration<double>(budget / 1_s);
    }
    if (team.identity.rank > 0) return helped(study, team);
    if (study.strategy.devices() > 1)
      note(
          fmt::format("the parallel sizes of the study's strategy ({}) do not matter here; its "
                      "framework, batch, precision, quantization and optimizer do",
                      foreshard::describe(study.strategy)));
    const bool has_place = !output_.empty() && output_ != "-";
    if (has_place && team.identity.ranks > 1)
      options.team = &team;
    else if (has_place)
      team::remove_rendezvous(team);
    options.best_so_far = true;
    options.version = version_line();
    const auto result = searched(study, std::move(options));
    if (!result) return result.error();
    FORESHARD_ASSIGN(const std::string text, written(study, *result));
    FORESHARD_TRY(write_result(output_, text));
    if (result->simulated.empty() || !result->simulated.front().fits)
      return result->partial ? kPartial : kInfeasible;
    return result->partial ? kPartial : kDone;
  }

 private:
  // Helps rank 0: this is one of several processes that a launcher started.
  Result<ExitCode> helped(const study::LoadedStudy& study, const team::Team& team) const {
    const std::string rank = fmt::format("rank {} of {} ({})", team.identity.rank,
                                         team.identity.ranks, team.identity.source);
    if (study.graph) {
      note(rank + " has no part in the search of a graph");
      return kDone;
    }
    if (output_.empty() || output_ == "-")
      return fail(rank + " does not know where rank 0 is", "give -o FILE: ranks meet beside it");
    const auto given = declaration_->given();
    const bool many = std::ranges::find(given, "--threads") != given.end();
    FORESHARD_TRY(search::help(study, team, version_line(), many ? threads_ : 1));
    return kDone;
  }

  Result<ExitCode> of_graph(const study::LoadedStudy& study, const Environment& environment) {
    if (!space_.empty()) return fail("--space: is for a study with a model, not a graph");
    if (format_ == "markdown")
      return fail("--format markdown: is for a study with a model, not a graph");
    if (!budget_.empty())
      return fail("--budget: a search of a graph ends by itself; give --simulate less");
    if (!why_not_.empty()) return fail("--why-not: is for a study with a model, not a graph");
    for (const std::string& option : declaration_->given())
      if (option == "--certify" || option == "--front" || option == "--any-framework")
        return fail(option + ": is for a study with a model, not a graph" +
                    (option == "--any-framework" ? "" : "; give --simulate more"));
    search::GraphSearchOptions options{.simulate = simulate_, .threads = threads_};
    if (level_ > 3) return fail("--level: 0, 1, 2 or 3");
    if (level_ >= 0) options.level = level_;
    if (!rules_.empty()) {
      yaml::Loader loader(yaml::Options{.catalogue = environment.catalogue, .overrides = {}});
      FORESHARD_ASSIGN(auto read, loader.read_file<search::GraphRules>(rules_));
      options.rules = std::move(read.rules);
      FORESHARD_TRY(search::faults_in(options.rules, study.graph->graph,
                                      mesh_of(study.strategy, study.graph->axes),
                                      study.graph->batch, loader));
    }
    Progress progress("simulating", 0);
    options.progress = [&](std::int64_t done, std::int64_t all) { progress.at(done, all); };
    FORESHARD_ASSIGN(const auto result, search::search_graph(study, options));
    for (const std::string& remark : result.remarks) note(remark);
    FORESHARD_TRY(write_result(
        output_, format_ == "json"  ? graph_search_json(study, result, top_, study_.asked())
                 : format_ == "csv" ? graph_search_csv(result, top_)
                                    : graph_search_text(study, result, top_, paper_for(output_))));
    return result.simulated.empty() || !result.simulated.front().fits ? kInfeasible : kDone;
  }

  static Result<search::SearchResult> searched(const study::LoadedStudy& study,
                                               search::SearchOptions options) {
    Progress progress("simulating", 0);  // of rounds, whose totals depend on the bounds
    options.progress = [&](std::int64_t done, std::int64_t all) { progress.at(done, all); };
    const Interruption interruption;
    options.stop = [] { return Interruption::asked(); };
    options.runnable = true;
    return search::run_search(study, options);
  }

  Result<std::string> written(const study::LoadedStudy& study,
                              const search::SearchResult& result) const {
    if (format_ == "json") return search::search_json(study, result, top_, study_.asked());
    if (format_ == "csv") return search::search_csv(result, top_);
    if (format_ == "markdown")
      return page::markdown_of(search::search_json(study, result, top_, study_.asked()));
    return search::search_text(study, result, top_, paper_for(output_));
  }

  std::optional<Declaration> declaration_;
  StudyOptions study_;
  std::string space_;
  std::int64_t level_ = -1;
  std::string rules_;
  bool any_framework_ = false;
  std::int64_t top_ = 10;
  std::int64_t simulate_ = 20;
  std::int64_t certify_ = 20;
  std::int64_t front_ = 6;
  std::int64_t threads_ = 2;
  std::string budget_;
  std::string why_not_;
  std::string format_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_search() {
  return std::make_unique<Search>();
}

}  // namespace foreshard::cli
