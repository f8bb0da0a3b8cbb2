#include "sim/search/search.h"

#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <memory>

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/search/output.h"

namespace foreshard::cli {
namespace {

class Search final : public Command {
 public:
  void declare(Declaration& declaration) override {
    study_.declare(declaration);
    declaration.option("--space", "FILE", space_, "Which values to try (schema: search).");
    declaration.count("--effort", effort_, 1, "How much to try: 1 (little) to 3 (everything).");
    declaration.count("--top", top_, 1, "Number of strategies to list.");
    declaration.count("--simulate", simulate_, 1, "Number of the best estimates to simulate.");
    declaration.count("--certify", certify_, 0,
                      "Most further simulations, of strategies that might still be faster.");
    declaration.count("--threads", threads_, 1, "Number of simulations at the same time.");
    declaration.count("--max-seconds", max_seconds_, 0,
                      "Start no simulation after this time in seconds; 0: no limit.");
    add_format(declaration, format_, {"text", "json", "csv"});
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    FORESHARD_ASSIGN(const auto study, study_.load(environment, false));
    search::SearchOptions options;
    if (!space_.empty()) {
      yaml::Loader loader(yaml::Options{.catalogue = environment.catalogue, .overrides = {}});
      FORESHARD_ASSIGN(options.space, loader.read_file<search::SearchSpace>(space_));
    }
    if (effort_ > 0) options.space.effort = effort_;
    if (options.space.effort > 3) return fail("--effort: 1, 2 or 3");
    options.simulate = simulate_;
    options.certify = certify_;
    options.threads = threads_;
    if (max_seconds_ > 0) options.time_limit = std::chrono::seconds(max_seconds_);
    if (study.strategy.devices() > 1)
      note(
          fmt::format("the parallel sizes of the study's strategy ({}) do not matter here; its "
                      "framework, batch, precision, quantization and optimizer do",
                      foreshard::describe(study.strategy)));
    const auto result = searched(study, std::move(options));
    if (!result) return result.error();
    FORESHARD_TRY(write_result(output_, written(study, *result)));
    if (result->simulated.empty() || !result->simulated.front().fits)
      return result->partial ? kPartial : kInfeasible;
    return result->partial ? kPartial : kDone;
  }

 private:
  static Result<search::SearchResult> searched(const study::LoadedStudy& study,
                                               search::SearchOptions options) {
    Progress progress("simulating", 0);  // how many follows from the bounds
    options.progress = [&](std::int64_t, std::int64_t) { progress.tick(); };
    return search::run_search(study, options);
  }

  std::string written(const study::LoadedStudy& study, const search::SearchResult& result) const {
    if (format_ == "json") return search::search_json(study, result, top_);
    if (format_ == "csv") return search::search_csv(result, top_);
    return search::search_text(study, result, top_);
  }

  StudyOptions study_;
  std::string space_;
  std::int64_t effort_ = 0;
  std::int64_t top_ = 10;
  std::int64_t simulate_ = 20;
  std::int64_t certify_ = 20;
  std::int64_t threads_ = 2;
  std::int64_t max_seconds_ = 0;
  std::string format_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_search() {
  return std::make_unique<Search>();
}

}  // namespace foreshard::cli
