#include "cli/busy.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/study/run.h"
#include "strategies/program/ir/json.h"

namespace foreshard::cli {
namespace {

class Export final : public Command {
 public:
  void declare(Declaration& declaration) override {
    study_.declare(declaration);
    declaration.required_option("--program", "FILE", program_,
                                "Write the Program (JSON) to this file; - is stdout.");
  }

  ExitCode run(const Environment& environment) override {
    const Busy busy("lowering");
    const auto study = study_.load(environment);
    if (!study) return fail(study.error());
    const auto cluster = study::cluster_of(*study);
    if (!cluster) return fail(cluster.error());
    const auto program = study::program_of(*study, *cluster);
    if (!program) return fail(program.error());
    if (const auto error = write_result(program_, program::to_json(*program) + "\n"))
      return fail(*error);
    return kDone;
  }

 private:
  StudyOptions study_;
  std::string program_;
};

}  // namespace

std::unique_ptr<Command> make_export() {
  return std::make_unique<Export>();
}

}  // namespace foreshard::cli
