#include "cli/advise.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/interruption.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/advise/output.h"
#include "sim/page/page.h"
#include "sim/simulate/memory_limit.h"

namespace foreshard::cli {

Result<advise::Advice> advised(const study::LoadedStudy& study, const StudyOptions& given,
                               const Environment& environment, std::int64_t top,
                               std::int64_t threads) {
  Progress progress("simulating", 0);
  const Interruption interruption;
  advise::AdviceOptions options{
      .top = top,
      .threads = threads,
      .catalogue = environment.catalogue,
      .stop = [] { return Interruption::asked(); },
      .progress = [&](std::int64_t done, std::int64_t all) { progress.at(done, all); }};
  if (const auto free = sim::free_memory()) options.max_memory = *free;
  return advise::advise(study, given.reload(environment), options);
}

namespace {

class Advise final : public Command {
 public:
  void declare(Declaration& declaration) override {
    study_.declare(declaration);
    declaration.count("--top", top_, 1, "Number of changes to list, and of changes of hardware.");
    declaration.count("--threads", threads_, 1, "Number of simulations at the same time.");
    add_format(declaration, format_, {"text", "json", "markdown"});
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    FORESHARD_ASSIGN(const auto study, study_.load(environment));
    FORESHARD_ASSIGN(const auto advice, advised(study, study_, environment, top_, threads_));
    std::string text = format_ == "text" ? advise::advice_text(advice, paper_for(output_))
                                         : advise::advice_json(advice);
    if (format_ == "markdown") {
      FORESHARD_ASSIGN(text, page::markdown_of(text));
    }
    FORESHARD_TRY(write_result(output_, text));
    if (advice.partial) return kPartial;
    const bool runs = advice.now.fits && std::isfinite(advice.now.step.in_base());
    return runs || !advice.changes.empty() ? kDone : kInfeasible;
  }

 private:
  StudyOptions study_;
  std::int64_t top_ = 3;
  std::int64_t threads_ = 2;
  std::string format_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_advise() {
  return std::make_unique<Advise>();
}

}  // namespace foreshard::cli
