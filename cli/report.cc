#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/shell_words.h"
#include "cli/advise.h"
#include "cli/commands.h"
#include "cli/given_result.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/advise/output.h"
#include "sim/page/page.h"

namespace foreshard::cli {
namespace {

class Report final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.arguments(
        "RESULT", given_,
        "What simulate --bundle wrote, or simulate, search, study, compare, advise, elastic, "
        "accuracy or topology collectives with --format json; or a study, which is simulated. "
        "- reads "
        "either from stdin.");
    declaration.flag("--no-advice", no_advice_,
                     "Leave out the best single changes to a study, for which many are simulated.");
    add_set(declaration, sets_);
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    if (!sets_.empty() && std::ranges::all_of(given_, is_result))
      return fail("--set changes a study, but only results are given", "give the study instead");
    std::vector<page::GivenResult> results;
    for (const std::string& name : given_) {
      if (is_result(name)) {
        FORESHARD_ASSIGN(auto text, read_result(name));
        results.push_back({name, std::move(text)});
      } else {
        FORESHARD_TRY(add_study(name, environment, results));
      }
    }
    FORESHARD_ASSIGN(const auto page, page::page_of(results, command()));
    FORESHARD_TRY(write_result(output_, page));
    return kDone;
  }

 private:
  Status add_study(const std::string& name, const Environment& environment,
                   std::vector<page::GivenResult>& results) const {
    const StudyOptions options = StudyOptions::named(name, sets_);
    FORESHARD_ASSIGN(const auto study, options.load(environment));
    FORESHARD_ASSIGN(auto text, simulated_result(study));
    results.push_back({name, std::move(text)});
    if (no_advice_) return {};
    const auto advice = advised(study, options, environment);
    if (!advice) {
      note("without advice: " + advice.error().message);
      return {};
    }
    if (advice->partial) note("the advice is of the changes that were simulated until then");
    results.push_back({name, advise::advice_json(*advice)});
    return {};
  }

  // The command again, without folders: a page may be passed on.
  std::string command() const {
    std::string words = "foreshard report";
    for (const std::string& name : given_) words += " " + shell_word(without_folder(name));
    if (no_advice_) words += " --no-advice";
    for (const std::string& set : sets_) {
      const auto value = set.find('=') + 1;
      words += " --set " + shell_word(set.substr(0, value) + without_folder(set.substr(value)));
    }
    return words;
  }

  // A path without its folder; other values as they are ("25 GB/s").
  static std::string without_folder(const std::string& value) {
    const std::filesystem::path path(value);
    std::error_code fault;
    const bool is_path = path.is_absolute() || value.starts_with(".") || value.starts_with("~") ||
                         std::filesystem::exists(path, fault);
    return is_path ? path.filename().string() : value;
  }

  std::vector<std::string> given_;
  std::vector<std::string> sets_;
  bool no_advice_ = false;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_report() {
  return std::make_unique<Report>();
}

}  // namespace foreshard::cli
