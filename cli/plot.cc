#include <fmt/format.h>
#include <set>

#include "cli/commands.h"
#include "cli/given_result.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/picture/from_result.h"

namespace foreshard::cli {
namespace {

class Plot final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.required_argument(
        "RESULT", result_,
        "What simulate --bundle wrote, or simulate, search, study, compare, "
        "elastic, accuracy or topology collectives with --format json. Or a "
        "study, which is simulated. - reads either from stdin.");
    std::string choices;
    std::set<std::string_view> told;
    for (const picture::Kind& kind : picture::kinds())
      if (told.insert(kind.name).second)
        choices += fmt::format("{}{} ({})", choices.empty() ? "" : "; ", kind.name, kind.shows);
    declaration.option("--kind", "WORD", kind_,
                       "The picture: " + choices + ". By default the usual one of the result.");
    add_set(declaration, sets_);
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    if (!sets_.empty() && is_result(result_))
      return fail("--set changes a study, but a result is given", "give the study instead");
    FORESHARD_ASSIGN(const std::string text, given_result(result_, sets_, environment));
    const auto svg = picture::picture_of(text, kind_);
    if (!svg) return Error{svg.error().code, fmt::format("{}: {}", result_, svg.error().message)};
    FORESHARD_TRY(write_result(output_, *svg));
    return kDone;
  }

 private:
  std::string result_;
  std::string kind_;
  std::vector<std::string> sets_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_plot() {
  return std::make_unique<Plot>();
}

}  // namespace foreshard::cli
