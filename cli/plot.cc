#include <fmt/format.h>
#include <set>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/picture/from_result.h"

namespace foreshard::cli {
namespace {

class Plot final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.required_argument("RESULT", result_,
                                  "What simulate, search, study or topology collectives wrote with "
                                  "--format json; - reads stdin.");
    std::string choices;
    std::set<std::string_view> told;
    for (const picture::Kind& kind : picture::kinds())
      if (told.insert(kind.name).second)
        choices += fmt::format("{}{} ({})", choices.empty() ? "" : "; ", kind.name, kind.shows);
    declaration.option("--kind", "WORD", kind_,
                       "The picture: " + choices + ". By default the usual one of the result.");
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment&) override {
    FORESHARD_ASSIGN(const std::string text, read_result(result_));
    const auto svg = picture::picture_of(text, kind_);
    if (!svg) return Error{svg.error().code, fmt::format("{}: {}", result_, svg.error().message)};
    FORESHARD_TRY(write_result(output_, *svg));
    return kDone;
  }

 private:
  std::string result_;
  std::string kind_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_plot() {
  return std::make_unique<Plot>();
}

}  // namespace foreshard::cli
