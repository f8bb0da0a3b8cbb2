#include <fmt/format.h>

#include "base/record/record.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/results.h"
#include "foreshard_version.h"

namespace foreshard::cli {
namespace {

struct Build {
  std::string catalogue;
};

const record::Record<Build>& record_of(const Build*) {
  const auto constant = [](std::string_view text) { return [text](const Build&) { return text; }; };
  static const auto record =
      record::Record<Build>::result("foreshard.version/1", "What this build is (version).")
          .field("version", constant(version::kNumber))
          .field("commit", constant(version::kCommit))
          .field("build_type", constant(version::kBuildType))
          .field("compiler", constant(version::kCompiler))
          .field("optional_packages", constant(version::kOptionalPackages))
          .field("catalogue", &Build::catalogue, "Folder of the catalogue.");
  return record;
}

class Version final : public Command {
 public:
  void declare(Declaration& declaration) override {
    add_format(declaration, format_, {"text", "json"});
  }

  Result<ExitCode> run(const Environment& environment) override {
    const std::string catalogue =
        environment.catalogue.empty() ? "none" : environment.catalogue.front().string();
    const std::string text =
        format_ == "json" ? record::text_of(record::write(Build{catalogue}), 2) : words(catalogue);
    FORESHARD_TRY(write_result({}, text));
    return kDone;
  }

 private:
  static std::string words(const std::string& catalogue) {
    return fmt::format("{}\nwith      SimGrid{}{}\ncatalogue {}\n", version_line(),
                       version::kOptionalPackages.empty() ? "" : " ", version::kOptionalPackages,
                       catalogue);
  }

  std::string format_;
};

}  // namespace

record::Json version_schema() {
  return record::schema<Build>();
}

std::string version_line() {
  return fmt::format("foreshard {} ({}, {}, {})", version::kNumber, version::kCommit,
                     version::kBuildType, version::kCompiler);
}

std::unique_ptr<Command> make_version() {
  return std::make_unique<Version>();
}

}  // namespace foreshard::cli
