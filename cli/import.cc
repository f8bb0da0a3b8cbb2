#include <fmt/format.h>

#include "base/text.h"
#include "base/yaml/quoted.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"

namespace foreshard::cli {
namespace {

class Import final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.required_argument("FILE", options_.file,
                                  "The file of the other framework; - reads it from stdin.");
    std::vector<std::string> names;
    for (const launch::FormatInfo& format : launch::formats()) names.emplace_back(format.name);
    declaration.option(
        "--as", "FORMAT", options_.format,
        "Format of the file: " + quoted_choice(names) + ". Recognised from the text by default.");
    declaration.choice("--part", part_, {"strategy", "model", "study"},
                       "What is written: the strategy, the model that the file describes, or, with "
                       "--cluster, a study of both.");
    declaration.option("--cluster", "FILE", cluster_,
                       "The cluster that the run has to itself: a file, a catalogue name, or YAML "
                       "in braces.");
    declaration.count("--devices", devices_, 1,
                      "Ranks of the run, where neither the file nor --cluster says them.");
    add_set(declaration, sets_);
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    if (devices_ > 0 && !cluster_.empty())
      return fail("--devices and --cluster both say how many ranks there are", "omit one");
    if (part_ == "study" && cluster_.empty())
      return fail("a study has a cluster", "give --cluster, or --part strategy");
    FORESHARD_ASSIGN(options_.sets, overrides_of(sets_));
    study::StudyFiles files;
    if (devices_ > 0) options_.devices = devices_;
    if (!cluster_.empty()) {
      cluster_ = as_cluster(cluster_, environment.catalogue);
      files.cluster = cluster_;
      FORESHARD_ASSIGN(options_.devices,
                       study::devices_of(files, {.catalogue = environment.catalogue}));
    }
    FORESHARD_ASSIGN(const auto imported, import_given(options_));
    FORESHARD_ASSIGN(const std::string text, written(imported, files, environment));
    FORESHARD_TRY(write_result(output_, text));
    note_report(imported);
    return kDone;
  }

 private:
  Result<std::string> written(const launch::Imported& imported, study::StudyFiles& files,
                              const Environment& environment) const {
    std::string text = yaml::comment(fmt::format("From {} ({})", imported.name, imported.format));
    for (const launch::Unmodelled& each : imported.unmodelled)
      text += yaml::comment("not in the prediction: " + each.setting + ": " + each.why);
    yaml::Loader loader({.catalogue = environment.catalogue});
    if (part_ == "strategy") {
      for (const std::string& key : imported.open)
        text += yaml::comment(
            fmt::format("nobody says {0}; a study tries it out with open: [{0}]", key));
      text += launch::as_block(imported.strategy, 0);
      FORESHARD_TRY(loader.read_text<Strategy>(text, imported.name));
      return text;
    }
    if (imported.model.empty())
      return Error{Error::Code::kInvalidInput,
                   imported.name + ": error: it describes no model\n   help: use --part strategy"};
    std::vector<yaml::Override> overrides;
    FORESHARD_TRY(add_to_study(imported, files, overrides));
    if (part_ == "model") {
      text += launch::as_block(imported.model, 0);
      FORESHARD_TRY(loader.read_text<Model>(text, imported.name));
      return text;
    }
    FORESHARD_TRY(
        study::load_study(files, {.catalogue = environment.catalogue, .overrides = overrides}));
    text += "cluster: " + (cluster_.starts_with('{') ? cluster_ : yaml::quoted(cluster_)) + "\n";
    text += "model:\n" + launch::as_block(imported.model, 2);
    if (!imported.open.empty()) text += "open: [" + join(imported.open) + "]\n";
    return text + "strategy:\n" + launch::as_block(imported.strategy, 2);
  }

  ImportOptions options_;
  std::string part_;
  std::string cluster_;
  std::int64_t devices_ = 0;
  std::vector<std::string> sets_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_import() {
  return std::make_unique<Import>();
}

}  // namespace foreshard::cli
