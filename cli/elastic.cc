#include <memory>
#include <string>

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/elastic/run.h"

namespace foreshard::cli {
namespace {

class Elastic final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.required_argument("FILE", file_,
                                  "A time line: the file that names a study, what fails, and what "
                                  "is done about it, or a catalogue name (schema: elastic).");
    declaration.count("--threads", threads_, 1, "Number of simulations at the same time.");
    add_format(declaration, format_, {"text", "json"});
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    if (file_ != "-") FORESHARD_TRY(refuse_same_place("--output", output_, "the time line", file_));
    FORESHARD_ASSIGN(const auto timeline,
                     elastic::load_timeline(file_, {.catalogue = environment.catalogue}));
    const auto result = ran(timeline, environment);
    if (!result) {
      fail(result.error());
      return result.error().code == Error::Code::kInfeasible ? kInfeasible : kBadInput;
    }
    FORESHARD_TRY(write_result(output_, format_ == "json" ? elastic::elastic_json(*result)
                                                          : elastic::elastic_text(*result)));
    return kDone;
  }

 private:
  Result<elastic::ElasticResult> ran(const elastic::LoadedTimeline& timeline,
                                     const Environment& environment) const {
    Progress progress("simulating histories", 0);
    return elastic::run_elastic(timeline, {.catalogue = environment.catalogue,
                                           .threads = threads_,
                                           .progress = [&] { progress.tick(); }});
  }

  std::string file_;
  std::int64_t threads_ = 2;
  std::string format_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_elastic() {
  return std::make_unique<Elastic>();
}

}  // namespace foreshard::cli
