#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/progress.h"
#include "base/quantity.h"
#include "base/record/csv.h"
#include "base/record/record.h"
#include "base/text.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/reshard.h"
#include "cli/results.h"

#include "sim/study/study.h"
#include "strategies/checkpoint/convert.h"
#include "strategies/checkpoint/hugging_face.h"
#include "strategies/checkpoint/rules.h"
#include "strategies/parallelism/parameters.h"

namespace foreshard::cli {
namespace {

using checkpoint::ConversionPlan;
using checkpoint::Source;
using checkpoint::Target;

// The target layout of a model with a strategy. For inference, optimizer state is left out.
Target target_of(const Source& source, const Model& model, const Strategy& strategy) {
  Target target;
  target.origin =
      fmt::format("{}, tensor {} x pipeline {} x data {}", model.name, strategy.tensor_parallel,
                  strategy.pipeline_parallel, strategy.data_parallel);
  std::set<std::string> parameters;
  for (PlacedTensor& tensor : parameters_of(model, strategy)) {
    if (tensor.kind == StateKind::kParameter) parameters.insert(tensor.name);
    checkpoint::TensorEntry entry{.name = std::move(tensor.name),
                                  .type = checkpoint::stored_as(tensor.dtype),
                                  .shape = tensor.shape,
                                  .layout = std::move(tensor.layout)};
    if (tensor.unpadded != tensor.shape) entry.unpadded = std::move(tensor.unpadded);
    target.tensors.push_back(std::move(entry));
  }
  if (strategy.mode != Mode::kForward) return target;
  for (const checkpoint::SourceTensor& tensor : source.tensors) {
    const std::string& name = tensor.entry.name;
    for (const StateKind kind :
         {StateKind::kMaster, StateKind::kFirstMoment, StateKind::kSecondMoment}) {
      const std::string suffix = fmt::format(".{}", name_of(kind));
      if (name.ends_with(suffix) &&
          parameters.contains(name.substr(0, name.size() - suffix.size())))
        target.left_out.push_back(name);
    }
  }
  return target;
}

// The target layout for tensors that keep the names of Hugging Face. Such a directory has no
// optimizer state.
Result<Target> target_of_names(const Source& source, const Model& model, const Strategy& strategy) {
  constexpr int kCutsParameters = 3;
  if (strategy.zero_stage >= kCutsParameters)
    return Error{Error::Code::kUnsupported,
                 "--to-strategy: tensors with the names of Hugging Face are not cut over "
                 "data-parallel ranks (zero_stage: 3)\n   help: give zero_stage: 2"};
  const auto placed = parameters_of(model, strategy);
  FORESHARD_ASSIGN(Target named, checkpoint::target_by_parameters(source, placed));
  FORESHARD_TRY(checkpoint::other_elements(named, placed));
  named.origin =
      fmt::format("{}{}, tensor {} x pipeline {} x data {}", checkpoint::kHuggingFace, model.name,
                  strategy.tensor_parallel, strategy.pipeline_parallel, strategy.data_parallel);
  return named;
}

struct Converted {
  std::string out;
  const ConversionPlan* plan;
  const checkpoint::ConversionResult* result;
};

const record::Record<Converted>& record_of(const Converted*) {
  using record::at;
  using Of = Converted;
  using Plan = ConversionPlan;
  using Result = checkpoint::ConversionResult;
  static const auto record =
      record::Record<Of>::result("foreshard.reshard_checkpoint/1",
                                 "What `reshard --checkpoint` wrote (docs/checkpoint.md).")
          .field("out", &Of::out, "The directory.")
          .field("already_there", at<&Of::result, &Result::was_there>)
          .field("tensors", [](const Of& of) { return of.plan->target.tensors.size(); })
          .field("tensors_left_out", [](const Of& of) { return of.plan->target.left_out.size(); })
          .field("files", at<&Of::result, &Result::files>)
          .field("files_reused", at<&Of::result, &Result::files_reused>,
                 "Files that an earlier run had finished.")
          .field("bytes", at<&Of::plan, &Plan::bytes_to_write>)
          .field("bytes_verified", at<&Of::plan, &Plan::bytes_to_verify>)
          .field("bytes_read", at<&Of::result, &Result::bytes_read>)
          .field("bytes_written", at<&Of::result, &Result::bytes_written>);
  return record;
}

// Converts the shards of a checkpoint on disk.
class ReshardCheckpoint final : public ReshardMode {
 public:
  void declare(Declaration& declaration) override {
    declaration.option("--checkpoint", "DIR", directory_,
                       "A directory of shards, with a foreshard-checkpoint.json or of Hugging "
                       "Face; it is only read. --to is a layout for all tensors or a file of rules "
                       "(.yaml); or give --to-strategy and --model.");
    declaration.option(
        "--out", "DIR", out_,
        "With --checkpoint: the directory to create. An interrupted run is resumed.");
    declaration.flag("--force", force_, "With --checkpoint: replace a checkpoint at --out.");
    declaration.choice("--shards", shards_, {"safetensors", "raw"},
                       "With --checkpoint: the format of the files.");
    declaration.option("--max-memory", "BYTES", max_memory_,
                       "With --checkpoint: memory for buffers (256 MiB).");
  }

  bool asked() const override { return !directory_.empty(); }

  std::vector<std::string> options() const override {
    return {"--checkpoint", "--to",    "--to-strategy", "--model",     "--down",
            "--out",        "--force", "--shards",      "--max-memory"};
  }

  std::vector<std::string> settable(const ReshardOptions& options) const override {
    const bool file = !options.model.empty() && !study::is_hf_config(options.model);
    return file ? std::vector<std::string>{"model"} : std::vector<std::string>{};
  }

  Result<ExitCode> run(const ReshardOptions& options, const Environment& environment) override {
    if (!options.to.empty() && !options.model.empty())
      return fail("--model does not apply with --to", "it applies with --to-strategy");
    if (out_.empty()) return fail("--checkpoint also needs --out");
    if (options.to.empty() == options.to_strategy.empty())
      return fail("--checkpoint also needs either --to or --to-strategy");
    const auto memory = parse<Bytes>(max_memory_);
    if (!memory) return fail(Error{memory.error().code, "--max-memory: " + memory.error().message});
    FORESHARD_ASSIGN(const auto plan, plan_for(options, environment));

    Progress progress("converting", plan.bytes_to_verify + plan.bytes_to_write);
    const auto result = checkpoint::convert(
        plan, out_, {.max_memory = *memory, .replace = force_, .progress = [&](std::int64_t bytes) {
                       progress.tick(bytes);
                     }});
    if (!result) {
      fail(result.error());
      return result.error().code == Error::Code::kIo ? kInternalError : kBadInput;
    }
    FORESHARD_TRY(write_result(options.output, written(options, plan, *result)));
    return kDone;
  }

 private:
  Result<ConversionPlan> plan_for(const ReshardOptions& options,
                                  const Environment& environment) const {
    FORESHARD_ASSIGN(auto source, checkpoint::open_source(directory_, options.down));
    FORESHARD_ASSIGN(Target wanted, target_for(source, options, environment));
    if (wanted.origin.empty()) wanted.origin = source.origin;
    wanted.format =
        shards_ == "raw" ? checkpoint::FileFormat::kRaw : checkpoint::FileFormat::kSafetensors;
    return checkpoint::plan_conversion(std::move(source), std::move(wanted));
  }

  static Result<Target> target_for(const Source& source, const ReshardOptions& options,
                                   const Environment& environment) {
    FORESHARD_ASSIGN(auto overrides, overrides_of(options.sets));
    yaml::Loader loader({.catalogue = environment.catalogue, .overrides = std::move(overrides)});
    if (!options.to_strategy.empty()) {
      if (options.model.empty())
        return Error{Error::Code::kInvalidInput, "--to-strategy also needs --model"};
      FORESHARD_ASSIGN(const auto model, load_model(options.model, loader, "model"));
      FORESHARD_ASSIGN(const auto strategy, load_strategy(options.to_strategy, model, environment));
      if (!checkpoint::is_hugging_face(source)) return target_of(source, model, strategy);
      return target_of_names(source, model, strategy);
    }
    if (!options.to.ends_with(".yaml") && !options.to.ends_with(".yml"))
      return checkpoint::target_by_layout(source, options.to);
    FORESHARD_ASSIGN(const auto rules, loader.read_file<checkpoint::LayoutRules>(options.to));
    return checkpoint::target_by_rules(source, rules, loader);
  }

  std::string written(const ReshardOptions& options, const ConversionPlan& plan,
                      const checkpoint::ConversionResult& result) const {
    const Bytes bytes = static_cast<double>(plan.bytes_to_write) * 1_B;
    if (options.format != "text") {
      const record::Json json = record::write(Converted{out_, &plan, &result});
      if (options.format == "json") return record::text_of(json, 2);
      return record::csv(
          {{"out"}, {"already_there"}, {"tensors"}, {"files"}, {"files_reused"}, {"bytes"}},
          std::span(&json, 1));
    }
    if (result.was_there)
      return fmt::format("{} already holds this conversion: nothing to do\n", out_);
    std::string text = fmt::format("{}: {} {} in {} {}, {}", out_, plan.target.tensors.size(),
                                   plural(std::ssize(plan.target.tensors), "tensor"), result.files,
                                   plural(result.files, "file"), format(bytes));
    if (result.files_reused > 0)
      text += fmt::format("; {} files were already finished", result.files_reused);
    if (!plan.target.left_out.empty())
      text += fmt::format("; {} {} left out", plan.target.left_out.size(),
                          plural(std::ssize(plan.target.left_out), "tensor"));
    return text + "\n";
  }

  std::string directory_;
  std::string out_;
  bool force_ = false;
  std::string shards_;
  std::string max_memory_ = "256 MiB";
};

}  // namespace

record::Json reshard_checkpoint_schema() {
  return record::schema<Converted>();
}

std::unique_ptr<ReshardMode> make_reshard_checkpoint() {
  return std::make_unique<ReshardCheckpoint>();
}

}  // namespace foreshard::cli
