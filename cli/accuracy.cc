#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

namespace foreshard::cli {
namespace {

class Accuracy final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.arguments("TABLE.csv", tables_, "Tables of measurements.");
    add_format(declaration, format_, {"text", "json", "csv"});
    add_output(declaration, output_);
  }

  ExitCode run(const Environment&) override { return fail("accuracy is not part of this build"); }

 private:
  std::vector<std::string> tables_;
  std::string format_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_accuracy() {
  return std::make_unique<Accuracy>();
}

}  // namespace foreshard::cli
