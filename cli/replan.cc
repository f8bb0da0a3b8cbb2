#include "sim/elastic/replan.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/interruption.h"
#include "cli/options.h"
#include "cli/output.h"

namespace foreshard::cli {
namespace {

// Value of the option --NAME; nothing if it is not given.
template <class Q>
Result<std::optional<Q>> read_option(const char* name, const std::string& text) {
  if (text.empty()) return std::optional<Q>();
  const auto value = parse<Q>(text);
  if (!value) return Error{value.error().code, fmt::format("{}: {}", name, value.error().message)};
  if (!(*value >= Q())) return Error{Error::Code::kInvalidInput, fmt::format("{}: below 0", name)};
  return std::optional<Q>(*value);
}

class Replan final : public Command {
 public:
  void declare(Declaration& declaration) override {
    study_.declare(declaration);
    declaration.argument("NEW", changed_,
                         "The study after the change (file or catalogue name), whose strategy's "
                         "parallel sizes do not matter; without it, --down or --set-after.");
    declaration.repeatable("--down", "DEVICES", down_,
                           "What fails, as `down:` of a cluster names it: node3, node3/gpu5. May "
                           "be given again.");
    declaration.repeatable("--set-after", "KEY=VALUE", sets_,
                           "Set a value of the study after the change alone, for example "
                           "cluster.nodes=15. A value of its strategy is one that the search "
                           "keeps: strategy.tensor_parallel=8.");
    declaration.flag("--keep", keep_, "Keep the old strategy where it still fits.");
    declaration.option("--detection", "TIME", detection_, "From a failure until somebody acts.");
    declaration.option("--restart", "TIME", restart_,
                       "Until processes and communicators are there again.");
    declaration.option("--storage", "RATE", storage_,
                       "What checkpoints are read at, by all ranks together.");
    declaration.option("--space", "FILE", space_,
                       "Which strategies to try (schema: search): a file or YAML in braces.");
    declaration.count("--level", level_, 0, "How much to try: 0 (little) to 3 (everything).");
    declaration.count("--simulate", simulate_, 1, "Number of the best estimates to simulate.");
    declaration.count("--certify", certify_, 0,
                      "Most further simulations, of strategies that might still be faster.");
    declaration.count("--threads", threads_, 1, "Number of simulations at the same time.");
    add_format(declaration, format_, {"text", "json"});
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    FORESHARD_ASSIGN(auto options, options_of(environment));
    FORESHARD_ASSIGN(const auto before, study_.load(environment));
    FORESHARD_ASSIGN(const auto sets, sets_after(before));
    auto after = study_.load_other(environment, changed_, sets, false);
    if (!after) return as_given(after.error(), sets);
    FORESHARD_TRY(keep_what_is_set(after->strategy, options.search.space));
    const auto result = replanned(before, *std::move(after), std::move(options));
    if (!result) {
      fail(as_given(result.error(), sets));
      return result.error().code == Error::Code::kInfeasible ? kInfeasible : kBadInput;
    }
    FORESHARD_TRY(write_result(output_, format_ == "json"
                                            ? elastic::replan_json(*result)
                                            : elastic::replan_text(*result, paper_for(output_))));
    return result->partial ? kPartial : kDone;
  }

 private:
  Result<elastic::ReplanOptions> options_of(const Environment& environment) const {
    elastic::ReplanOptions options{.search = {}, .keep = keep_, .costs = {}};
    FORESHARD_ASSIGN(options.search.space, space_of(space_, environment));
    if (level_ > 3) return Error{Error::Code::kInvalidInput, "--level: 0, 1, 2 or 3"};
    if (level_ >= 0) options.search.space.level = level_;
    options.search.simulate = simulate_;
    options.search.certify = certify_;
    options.search.threads = threads_;
    FORESHARD_ASSIGN(options.costs.detection, read_option<Seconds>("--detection", detection_));
    FORESHARD_ASSIGN(options.costs.restart, read_option<Seconds>("--restart", restart_));
    FORESHARD_ASSIGN(options.costs.storage, read_option<BytesPerSecond>("--storage", storage_));
    if (options.costs.storage && !(*options.costs.storage > 0_B_s))
      return Error{Error::Code::kInvalidInput, "--storage: must be positive"};
    return options;
  }

  // The overrides with which the options describe the study after the change.
  Result<std::vector<std::string>> sets_after(const study::LoadedStudy& before) const {
    if (changed_.empty() && down_.empty() && sets_.empty())
      return Error{Error::Code::kInvalidInput,
                   "nothing changes\n   help: give the study after the change, or what fails "
                   "(--down node3), or a value (--set-after cluster.nodes=17)"};
    if (study_.study() == "-")
      return Error{Error::Code::kInvalidInput,
                   "- is given for a study, but it is read twice here: write it to a file"};
    std::vector<std::string> sets = sets_;
    if (!down_.empty()) {
      if (!changed_.empty())
        return Error{Error::Code::kInvalidInput,
                     "--down is of the study itself; write `down:` into " + changed_};
      std::vector<std::string> down = before.cluster.down;
      down.insert(down.end(), down_.begin(), down_.end());
      for (std::string& each : down) each = fmt::format("\"{}\"", each);
      sets.push_back(fmt::format("cluster.down=[{}]", join(down)));
    }
    return sets;
  }

  // Makes the search keep the values of the strategy that the options set.
  Status keep_what_is_set(const Strategy& strategy, search::SearchSpace& space) const {
    constexpr std::string_view kStrategy = "strategy";
    std::vector<std::string> keys;
    for (const std::string& set : sets_) {
      const std::string path = set.substr(0, set.find('='));
      if (!path.starts_with(kStrategy)) continue;
      if (keep_)
        return Error{
            Error::Code::kInvalidInput,
            fmt::format("--set-after {}: --keep keeps the old strategy where it fits; leave "
                        "one of them out",
                        set)};
      if (path == kStrategy)
        return Error{Error::Code::kInvalidInput,
                     fmt::format("--set-after {}: the strategy is searched; set the values that it "
                                 "shall have one by one: --set-after strategy.tensor_parallel=8",
                                 set)};
      const std::string rest = path.substr(kStrategy.size() + 1);
      keys.push_back(rest.substr(0, rest.find('.')));
    }
    // `recompute` comes first, because it decides whether its parts can be kept.
    std::ranges::stable_sort(keys, std::greater(),
                             [](const std::string& key) { return key == "recompute"; });
    for (const std::string& key : keys)
      if (const Status kept = search::keep_value(space, strategy, key); !kept.ok())
        return Error{kept.error().code, "--set-after " + kept.error().message};
    return {};
  }

  // Rewrites an error about a `--set` value to name the option that the value came from.
  Error as_given(Error error, const std::vector<std::string>& sets) const {
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const std::string set = "--set " + sets[i];
      const std::size_t at = error.message.find(set);
      if (at == std::string::npos) continue;
      error.message.replace(
          at, set.size(),
          i < sets_.size() ? "--set-after " + sets[i] : "--down " + join(down_, " --down "));
    }
    return error;
  }

  static Result<elastic::Replan> replanned(const study::LoadedStudy& before,
                                           study::LoadedStudy after,
                                           elastic::ReplanOptions options) {
    Progress progress("simulating", 0);
    options.search.progress = [&](std::int64_t done, std::int64_t all) { progress.at(done, all); };
    const Interruption interruption;
    options.search.stop = [] { return Interruption::asked(); };
    return elastic::replan(before, std::move(after), options);
  }

  StudyOptions study_;
  std::string changed_;
  std::vector<std::string> down_;
  std::vector<std::string> sets_;
  bool keep_ = false;
  std::string detection_;
  std::string restart_;
  std::string storage_;
  std::string space_;
  std::int64_t level_ = -1;
  std::int64_t simulate_ = 20;
  std::int64_t certify_ = 20;
  std::int64_t threads_ = 2;
  std::string format_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_replan() {
  return std::make_unique<Replan>();
}

}  // namespace foreshard::cli
