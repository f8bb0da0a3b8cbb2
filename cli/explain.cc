#include "sim/search/explain.h"

#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/found.h"
#include "cli/interruption.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/search/search.h"

namespace foreshard::cli {
namespace {

class Explain final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration_ = declaration;
    declaration.required_argument("RESULT", result_,
                                  "What `foreshard search --format json` wrote; - reads stdin. "
                                  "found.json#3 explains the first beside the third.");
    declaration.option("--why-not", "STRATEGY", why_not_,
                       "Say what ruled such a strategy out: \"tp8 pp4 zero1\". The study is read "
                       "again, and must be what it was.");
    add_format(declaration, format_, {"text", "json"});
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    FORESHARD_ASSIGN(auto found, read_found(result_));
    search::ReadResult result = search::beside(std::move(found.result), found.index);
    for (const std::string& option : declaration_->given()) {
      if (option != "--why-not") continue;
      FORESHARD_ASSIGN(result.found.why_not, why_not(result, environment));
    }
    FORESHARD_TRY(write_result(
        output_, format_ == "json" ? search::explanation_json(result)
                                   : search::explanation_text(result, paper_for(output_))));
    return kDone;
  }

 private:
  Result<search::WhyNot> why_not(const search::ReadResult& result,
                                 const Environment& environment) const {
    const auto fault = [&](const std::string& what) {
      return Error{Error::Code::kInvalidInput, "--why-not: " + what};
    };
    if (!result.is_of_model())
      return fault("is for the result of a study with a model, not a graph");
    const auto narrowed = search::narrowed(result.found.space, why_not_);
    if (!narrowed) return fault(narrowed.error().message);
    FORESHARD_ASSIGN(const auto options, StudyOptions::of(result.asked));
    auto study = options.load(environment, false);
    if (!study)
      return fault("the study of the result cannot be read again\n" + study.error().message);
    if (const Status same = search::unchanged(result.asked.digests, *study); !same.ok())
      return fault(same.error().message);
    const Interruption interruption;
    search::SearchOptions how{.space = result.found.space,
                              .stop = [] { return Interruption::asked(); },
                              .why_not = why_not_};
    return search::why_not(*study, how, result.found);
  }

  std::optional<Declaration> declaration_;
  std::string result_;
  std::string why_not_;
  std::string format_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_explain() {
  return std::make_unique<Explain>();
}

}  // namespace foreshard::cli
