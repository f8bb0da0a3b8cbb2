#include <cstdint>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

namespace foreshard::cli {
namespace {

class Search final : public Command {
 public:
  void declare(Declaration& declaration) override {
    study_.declare(declaration);
    declaration.count("--top", top_, 1, "How many strategies to list.");
    add_format(declaration, format_, {"text", "json", "csv"});
    add_output(declaration, output_);
  }

  ExitCode run(const Environment& environment) override {
    const auto study = study_.load(environment);
    if (!study) return fail(study.error());
    return fail("search is not part of this build");
  }

 private:
  StudyOptions study_;
  std::int64_t top_ = 10;
  std::string format_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_search() {
  return std::make_unique<Search>();
}

}  // namespace foreshard::cli
