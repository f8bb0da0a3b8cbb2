#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/kinds.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/results.h"

namespace foreshard::cli {
namespace {

class Schema final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.argument(
        "KIND", kind_,
        "Kind of file: " + join(kind_names()) +
            " (default: study). Or a result, by "
            "its name or by what it says under `schema`, such as foreshard.search/1: " +
            join(result_names()) + ".");
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment&) override {
    auto names = kind_names();
    const bool is_kind = std::ranges::find(names, kind_) != names.end();
    auto schema = is_kind ? std::nullopt : result_schema(kind_);
    if (const FileKind* kind = find_kind(kind_); kind != nullptr && !schema)
      schema = kind->schema();
    if (!schema) {
      const auto results = result_names();
      names.insert(names.end(), results.begin(), results.end());
      const auto near = nearest_name(kind_, names);
      return fail(fmt::format("no kind of file or result is called '{}'", kind_),
                  near ? fmt::format("did you mean '{}'?", *near) : "use " + quoted_choice(names));
    }
    constexpr int kIndent = 2;
    FORESHARD_TRY(write_result(output_, schema->dump(kIndent) + "\n"));
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
