#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/reshard.h"

#include "sim/study/tensor_reshard.h"
#include "strategies/program/ir/json.h"
#include "strategies/reshard/explain.h"
#include "strategies/reshard/program.h"

namespace foreshard::cli {
namespace {

// Mode that plans how a tensor moves from one layout to another on a cluster.
class ReshardTensor final : public ReshardMode {
 public:
  void declare(Declaration& declaration) override {
    declaration.option("--tensor", "TENSOR", tensor_,
                       "Type and shape, for example \"bf16[8192,53248]\".");
    declaration.count("--plans", plans_, 1, "With --tensor: number of plans to compare.");
    declaration.count("--simulate", simulate_, 0,
                      "With --tensor: number of the best plans to simulate (and near ties); 0 "
                      "compares closed forms only.");
    declaration.output("--program", "FILE", program_,
                       "With --tensor: write the chosen plan as a Program (JSON) to this file.");
  }

  bool asked() const override { return !tensor_.empty(); }

  std::vector<std::string> options() const override {
    return {"--tensor", "--from", "--to", "--cluster", "--plans", "--simulate", "--program"};
  }

  std::vector<std::string> settable(const ReshardOptions&) const override {
    return {"cluster", "communication"};
  }

  Result<ExitCode> run(const ReshardOptions& options, const Environment& environment) override {
    for (const auto& [name, value] :
         {std::pair("--from", &options.from), std::pair("--to", &options.to),
          std::pair("--cluster", &options.cluster)})
      if (value->empty()) return fail(fmt::format("--tensor also needs {}", name));
    if (!program_.empty() && program_ == options.output)
      return fail("--program and --output name one file: " + program_);
    FORESHARD_ASSIGN(auto overrides, overrides_of(options.sets));
    FORESHARD_ASSIGN(
        const auto move,
        study::load_reshard(
            {.tensor = tensor_, .from = options.from, .to = options.to, .cluster = options.cluster},
            {.catalogue = environment.catalogue, .overrides = std::move(overrides)}, "--"));
    const auto explanation = explained(move);
    if (!explanation) {
      fail(explanation.error());
      return explanation.error().code == Error::Code::kInfeasible ? kInfeasible : kBadInput;
    }
    FORESHARD_TRY(write_program(explanation->choice.best().plan, move));
    FORESHARD_TRY(
        write_result(options.output, written(*explanation, options.format, options.output)));
    return kDone;
  }

 private:
  Result<reshard::Explanation> explained(const study::TensorReshard& move) const {
    const Busy busy("comparing plans");
    constexpr std::int64_t kMost = 1000;
    return study::explain(move,
                          {.keep = static_cast<std::int32_t>(std::min(plans_, kMost)),
                           .simulate = static_cast<std::int32_t>(std::min(simulate_, kMost))});
  }

  Status write_program(const reshard::Plan& plan, const study::TensorReshard& move) const {
    if (program_.empty()) return {};
    if (!(plan.estimate > 0_s)) {
      note(fmt::format("nothing moves: no Program is written to {}", program_));
      return {};
    }
    const auto program = reshard::program_of(plan, move.tensor, {.cluster = &move.cluster});
    if (!program)
      return Error{program.error().code, fmt::format("--program: {}", program.error().message)};
    return write_result(program_, program::to_json(*program));
  }

  static std::string written(const reshard::Explanation& explanation, const std::string& format,
                             const std::string& output) {
    if (format == "json") return reshard::to_json(explanation);
    if (format == "csv") return reshard::to_csv(explanation);
    return reshard::to_text(explanation, paper_for(output));
  }

  std::string tensor_;
  std::int64_t plans_ = 12;
  std::int64_t simulate_ = 3;
  std::string program_;
};

}  // namespace

std::unique_ptr<ReshardMode> make_reshard_tensor() {
  return std::make_unique<ReshardTensor>();
}

}  // namespace foreshard::cli
