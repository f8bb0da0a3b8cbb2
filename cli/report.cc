#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/page/page.h"
#include "sim/report/json.h"
#include "sim/report/predict.h"

namespace foreshard::cli {

namespace {

class Report final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.arguments(
        "RESULT", given_,
        "What simulate --bundle, or simulate, search, study or topology collectives with --format "
        "json wrote; or a study, which is simulated.");
    add_set(declaration, sets_);
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    std::vector<page::GivenResult> results;
    bool simulated = false;
    for (const std::string& name : given_) {
      if (is_result(name)) {
        FORESHARD_ASSIGN(auto text, read_result(name));
        results.push_back({name, std::move(text)});
        continue;
      }
      simulated = true;
      FORESHARD_ASSIGN(auto text, simulate(environment, name));
      results.push_back({name, std::move(text)});
    }
    if (!sets_.empty() && !simulated)
      return fail("--set changes a study, but only results are given", "give the study instead");
    FORESHARD_ASSIGN(const auto page, page::page_of(results, command()));
    FORESHARD_TRY(write_result(output_, page));
    return kDone;
  }

 private:
  // A file that holds JSON, compressed or not; anything else is a study.
  static bool is_result(const std::string& name) {
    std::error_code status;
    if (name == "-") return true;
    if (!std::filesystem::is_regular_file(name, status)) return false;
    const auto has = [&](std::string_view ending) { return name.ends_with(ending); };
    return has(".json") || has(".fsr") || has(".gz");
  }

  Result<std::string> simulate(const Environment& environment, const std::string& name) const {
    FORESHARD_ASSIGN(auto study, StudyOptions().load_other(environment, name, sets_));
    const Busy busy("simulating");
    FORESHARD_ASSIGN(const auto report,
                     report::predict(study, {.timeline = true},
                                     {.sensitivities = !study.disturbances, .bundle = true}));
    return report::to_json(report);
  }

  // The command again, without folders: a page may be passed on.
  std::string command() const {
    std::string words = "foreshard report";
    for (const std::string& name : given_)
      words += " " + std::filesystem::path(name).filename().string();
    for (const std::string& set : sets_) words += " --set " + set;
    return words;
  }

  std::vector<std::string> given_;
  std::vector<std::string> sets_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_report() {
  return std::make_unique<Report>();
}

}  // namespace foreshard::cli
