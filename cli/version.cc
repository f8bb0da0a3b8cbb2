#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "foreshard_version.h"

namespace foreshard::cli {
namespace {

class Version final : public Command {
 public:
  void declare(Declaration& declaration) override {
    add_format(declaration, format_, {"text", "json"});
  }

  Result<ExitCode> run(const Environment& environment) override {
    const std::string catalogue =
        environment.catalogue.empty() ? "none" : environment.catalogue.front().string();
    const std::string text = format_ == "json" ? json(catalogue) : words(catalogue);
    FORESHARD_TRY(write_result({}, text));
    return kDone;
  }

 private:
  static std::string words(const std::string& catalogue) {
    return fmt::format("{}\nwith      SimGrid{}{}\ncatalogue {}\n", version_line(),
                       version::kOptionalPackages.empty() ? "" : " ", version::kOptionalPackages,
                       catalogue);
  }

  static std::string json(const std::string& catalogue) {
    const nlohmann::ordered_json json = {
        {"schema", "foreshard.version/1"}, {"version", version::kNumber},
        {"commit", version::kCommit},      {"build_type", version::kBuildType},
        {"compiler", version::kCompiler},  {"optional_packages", version::kOptionalPackages},
        {"catalogue", catalogue}};
    constexpr int kIndent = 2;
    return json.dump(kIndent) + "\n";
  }

  std::string format_;
};

}  // namespace

std::string version_line() {
  return fmt::format("foreshard {} ({}, {}, {})", version::kNumber, version::kCommit,
                     version::kBuildType, version::kCompiler);
}

std::unique_ptr<Command> make_version() {
  return std::make_unique<Version>();
}

}  // namespace foreshard::cli
