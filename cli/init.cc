// A first study from four questions, which are asked on a terminal, or from flags alone.
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/caller.h"
#include "base/file.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/first_study.h"
#include "cli/options.h"
#include "cli/output.h"

namespace foreshard::cli {
namespace {

class Init final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.option("--model", "NAME", model_,
                       "The model: a name (foreshard catalog models), a file, or a folder of "
                       "Hugging Face.");
    declaration.option("--cluster", "NAME", cluster_,
                       "The machine: a cluster, a node or a device (foreshard catalog clusters), "
                       "or a file.");
    declaration.option("--gpus", "N", gpus_,
                       "How many GPUs (default: those of the cluster, or of one node).");
    declaration.option("--batch", "SIZE", batch_,
                       "Global batch of a step in sequences or tokens, such as 512 or \"4M "
                       "tokens\" (default: " +
                           FirstStudy::usual_batch() + ").");
    declaration.option("--train", "LENGTH", train_,
                       "Length of the whole training, such as \"2T tokens\", for days and USD.");
    declaration.flag("--force", force_, "Replace FILE if it exists.");
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    FirstStudy study(environment, std::filesystem::path(output_).parent_path());
    asks_ = current_caller == nullptr && isatty(STDIN_FILENO) == 1 &&
            (model_.empty() || cluster_.empty() || gpus_.empty() || batch_.empty());
    FORESHARD_TRY(may_write());
    FORESHARD_TRY(study.set_train(train_));
    for (const Question& one : questions()) FORESHARD_TRY(answer(study, one));
    for (;;) {
      std::string why;
      FORESHARD_ASSIGN(const auto text, searched(study, why));
      if (text) {
        FORESHARD_TRY(write_result(output_, *text));
        return kDone;
      }
      fail("nothing fits on so few GPUs: " + why,
           "give more --gpus, or a smaller model (offloading to hosts is not tried)");
      if (!asks_) return kInfeasible;
      FORESHARD_TRY(ask(study, questions()[kGpus]));
    }
  }

 private:
  struct Question {
    const char* option;
    std::string Init::*given;
    const char* text;
    Status (FirstStudy::*set)(const std::string&);
    std::string (*usual)(const FirstStudy&);
    bool has_default;  // Whether the default is taken where nobody is asked.
  };
  static constexpr std::size_t kGpus = 2;  // the place of that question

  static const std::array<Question, 4>& questions() {
    static const std::array<Question, 4> all{{
        {"--model", &Init::model_, "Which model? A name (foreshard catalog models) or a folder",
         &FirstStudy::set_model, [](const FirstStudy&) { return std::string("llama3-8b"); }, false},
        {"--cluster", &Init::cluster_, "On which machine? A cluster, a node or a device",
         &FirstStudy::set_cluster, [](const FirstStudy&) { return std::string("dgx-h100"); },
         false},
        {"--gpus", &Init::gpus_, "How many GPUs?", &FirstStudy::set_gpus,
         [](const FirstStudy& study) { return study.usual_gpus(); }, true},
        {"--batch", &Init::batch_, "Which batch, in sequences or tokens?", &FirstStudy::set_batch,
         [](const FirstStudy&) { return FirstStudy::usual_batch(); }, true},
    }};
    return all;
  }

  // Asked before the questions, which take time.
  Status may_write() const {
    if (output_.empty() || output_ == "-" || is_special(output_)) return {};
    std::error_code status;
    const auto folder = std::filesystem::absolute(output_, status).parent_path();
    if (std::filesystem::is_directory(output_, status))
      return Error{Error::Code::kIo, fmt::format("cannot write {}: it is a folder", output_)};
    if (!std::filesystem::is_directory(folder, status))
      return Error{Error::Code::kIo,
                   fmt::format("cannot write {}: there is no folder {}", output_, folder.string())};
    if (!std::filesystem::exists(output_, status) || force_) return {};
    return Error{
        Error::Code::kInvalidInput,
        fmt::format("{} exists\n   help: give another -o FILE, or --force to replace it", output_)};
  }

  // The answer of the command line, of the person who is asked, or the default.
  Status answer(FirstStudy& study, const Question& question) const {
    std::string text = this->*question.given;
    if (text.empty() && asks_) return ask(study, question);
    if (text.empty() && !question.has_default)
      return Error{Error::Code::kInvalidInput,
                   fmt::format("{} is not given, and there is no terminal to ask\n   help: for "
                               "example {} {}",
                               question.option, question.option, question.usual(study))};
    if (text.empty()) text = question.usual(study);
    const Status status = (study.*question.set)(text);
    if (status.ok()) return {};
    return Error{status.error().code,
                 fmt::format("{}: {}", question.option, status.error().message)};
  }

  // Asks until the answer is good. An empty one is the default.
  static Status ask(FirstStudy& study, const Question& question) {
    for (std::string line;;) {
      const std::string usual = question.usual(study);
      std::cerr << printable(fmt::format("{} [{}]: ", question.text, usual)) << std::flush;
      if (!std::getline(std::cin, line))
        return Error{Error::Code::kInvalidInput, "the questions were not answered"};
      const Status status = (study.*question.set)(line.empty() ? usual : line);
      if (status.ok()) return {};
      fail(status.error());
    }
  }

  Result<std::optional<std::string>> searched(const FirstStudy& study, std::string& why) const {
    const Busy busy("searching for a strategy that fits");
    const bool to_file = !output_.empty() && output_ != "-";
    return study.written(to_file ? output_ : "study.yaml", why);
  }

  std::string model_;
  std::string cluster_;
  std::string gpus_;
  std::string batch_;
  std::string train_;
  bool force_ = false;
  bool asks_ = false;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_init() {
  return std::make_unique<Init>();
}

}  // namespace foreshard::cli
