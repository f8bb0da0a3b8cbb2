#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/kinds.h"
#include "cli/options.h"
#include "cli/output.h"

namespace foreshard::cli {
namespace {

class Schema final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.argument("KIND", kind_,
                         "Kind of file: " + join(kind_names()) + " (default: study).");
    add_output(declaration, output_);
  }

  ExitCode run(const Environment&) override {
    const Kind* kind = find_kind(kind_);
    if (kind == nullptr) {
      const auto near = nearest_name(kind_, kind_names());
      return fail(
          fmt::format("no kind of file is called '{}'", kind_),
          near ? fmt::format("did you mean '{}'?", *near) : "use " + quoted_choice(kind_names()));
    }
    constexpr int kIndent = 2;
    if (const auto error = write_result(output_, kind->schema().dump(kIndent) + "\n"))
      return fail(*error);
    return kDone;
  }

 private:
  std::string kind_ = "study";
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_schema() {
  return std::make_unique<Schema>();
}

}  // namespace foreshard::cli
