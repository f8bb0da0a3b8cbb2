#include "cli/reshard.h"

#include <algorithm>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

namespace foreshard::cli {
namespace {

class Reshard final : public Command {
 public:
  Reshard() { modes_.push_back(make_reshard_tensor()); }

  void declare(Declaration& declaration) override {
    declaration.option("--from", "LAYOUT", options_.from,
                       "How it lies: mesh axes, ranks, what splits each dimension; for example "
                       "\"tp=8 @0-7 [-, tp]\".");
    declaration.option("--to", "LAYOUT", options_.to, "How it is to lie.");
    declaration.option("--cluster", "FILE", options_.cluster,
                       "Cluster: a file or a catalogue name. Rank r is on device r.");
    for (const auto& mode : modes_) mode->declare(declaration);
    add_set(declaration, options_.sets);
    add_format(declaration, options_.format, {"text", "json", "csv"});
    add_output(declaration, options_.output);
  }

  ExitCode run(const Environment& environment) override {
    const auto asked =
        std::ranges::count_if(modes_, [](const auto& mode) { return mode->asked(); });
    if (asked != 1)
      return fail(asked == 0 ? "nothing to reshard is named" : "more than one thing is named",
                  "give a tensor, for example --tensor \"bf16[8192,8192]\"");
    return (*std::ranges::find_if(modes_, [](const auto& mode) { return mode->asked(); }))
        ->run(options_, environment);
  }

 private:
  ReshardOptions options_;
  std::vector<std::unique_ptr<ReshardMode>> modes_;
};

}  // namespace

std::unique_ptr<Command> make_reshard() {
  return std::make_unique<Reshard>();
}

}  // namespace foreshard::cli
