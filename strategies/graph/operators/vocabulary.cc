// Cross-entropy on a vocabulary that is split over ranks (Megatron-LM, megatron/core/fusions/
// fused_cross_entropy.py). Each rank finds the maximum over its part; with the maximum over all
// parts it then computes, for its part, the sum of exponentials and the target's logit. Only these
// three numbers per token are reduced.
#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

constexpr std::int64_t kStatistics = 2;  // sum of exponentials, target's logit

// [tokens..., width]
Shape wide(Shape tokens, std::int64_t width) {
  tokens.push_back(width);
  return tokens;
}

std::string fault_in(const Shape& logits, const Shape& statistics, std::int64_t width,
                     const Shape& targets) {
  if (!logits.empty() && Shape(logits.begin(), logits.end() - 1) == targets &&
      statistics == wide(targets, width))
    return {};
  return text_of(logits) + ", " + text_of(statistics) + " and " + text_of(targets) +
         " are not [..., vocabulary], [..., " + std::to_string(width) + "] and [...]";
}

// Dimensions of logits, of statistics (a few numbers per token) and of targets in a rule.
struct Dimensions {
  RuleMaker make;
  RuleMaker::Dimensions logits;
  RuleMaker::Dimensions statistics;
  RuleMaker::Dimensions targets;
};
Dimensions dimensions_of(const Shape& logits) {
  Dimensions d;
  d.logits = d.make.each(logits);
  d.targets.assign(d.logits.begin(), d.logits.end() - 1);
  d.statistics = d.targets;
  d.statistics.emplace_back();
  return d;
}

Result<Inferred> infer_maximum(const Call& call) {
  const Shape& logits = call.inputs[0].shape;
  if (logits.empty()) return wrong("needs [..., vocabulary]");
  Dimensions d = dimensions_of(logits);
  d.make[d.logits.back()[0]].reduction = Reduction::kMax;
  d.make.input(d.logits).output(d.statistics);
  return Inferred{{{DType::kFp32, wide(Shape(logits.begin(), logits.end() - 1), 1)}},
                  d.make.take()};
}

Result<Inferred> infer_vocabulary_cross_entropy(const Call& call) {
  const Shape& logits = call.inputs[0].shape;
  const Shape& targets = call.inputs[2].shape;
  if (const auto why = fault_in(logits, call.inputs[1].shape, 1, targets); !why.empty())
    return wrong(why);
  FORESHARD_ASSIGN(const auto to, dtype_named(call.settings.text("to")));
  Dimensions d = dimensions_of(logits);
  d.make.input(d.logits).input(d.statistics).input(d.targets);
  d.make.output(d.statistics).output(d.logits);
  return Inferred{{{DType::kFp32, wide(targets, kStatistics)}, {to, logits}}, d.make.take()};
}

// exponentials, statistics, targets -> gradient of the logits.
Result<Inferred> infer_gradient(const Call& call) {
  const Shape& logits = call.inputs[0].shape;
  const Shape& targets = call.inputs[2].shape;
  if (const auto why = fault_in(logits, call.inputs[1].shape, kStatistics, targets); !why.empty())
    return wrong(why);
  FORESHARD_ASSIGN(const auto to, dtype_named(call.settings.text("to")));
  Dimensions d = dimensions_of(logits);
  d.make.input(d.logits).input(d.statistics).input(d.targets).output(d.logits);
  return Inferred{{{to, logits}}, d.make.take()};
}

template <PassKind kind>
std::vector<Kernel> loss_kernels(const Call& local, const Call&) {
  return implemented(pass_over(kind, local.inputs[0]), local.settings.text("kernels"));
}

// Each loss that is logged takes further kernels: logits to fp32; their maximum and sum of
// exponentials, in one pass even for rows that no cache holds; the logarithms of all probabilities.
// Source: mosaicml/composer v0.14.0, metrics/nlp.py (LanguageCrossEntropy: CrossEntropyLoss under
// autocast).
std::vector<Kernel> losses_kernels(const Call& local, const Call& whole) {
  auto kernels = loss_kernels<PassKind::kCrossEntropyForward>(local, whole);
  TensorType logits = local.inputs[0];
  logits.dtype = DType::kFp32;
  for (std::int64_t i = 0; i < local.settings.integer("logged"); ++i) {
    if (local.inputs[0].dtype != logits.dtype)
      kernels.push_back(pass_over(PassKind::kCast, local.inputs[0]));
    kernels.push_back(pass_over(PassKind::kReduce, logits));
    kernels.push_back(pass_over(PassKind::kUnary, logits));
  }
  return kernels;
}

// The "gradient" of the statistics is not a gradient but the reduced statistics themselves
// (loss_backward).
void vocabulary_cross_entropy_backward(Gradients& gradients) {
  const TensorId statistics = gradients.of_output(0);
  if (!statistics.valid()) return;
  Settings settings = gradients.op().settings;
  settings.set("to", std::string(name_of(gradients.tensor(gradients.input(0)).dtype)));
  gradients.give(0,
                 gradients.add("vocabulary_cross_entropy_gradient", "",
                               {gradients.output(1), statistics, gradients.input(2)}, settings)[0]);
}

Result<Inferred> infer_loss(const Call& call) {
  RuleMaker make;
  const auto factors = make.each(call.inputs[0].shape);
  make.input(factors).output(factors);
  return Inferred{{call.inputs[0]}, make.take()};
}

void loss_backward(Gradients& gradients) {
  gradients.give(0, gradients.output(0));
}

std::vector<SettingDefinition> settings(std::string_view of) {
  return {{.name = "to",
           .fallback = std::string("fp32"),
           .doc = of,
           .words = {"fp32", "tf32", "fp16", "bf16", "fp8"}},
          {.name = "kernels",
           .fallback = std::string("fused"),
           .doc = "One kernel; one whose backward pass works on the logits again; one for each "
                  "operator of PyTorch; or those of log_softmax on a copy in fp32.",
           .words = {"fused", "recomputed", "eager", "log-softmax"}},
          {.name = "keeps",
           .fallback = false,
           .doc = "The gradient is not written over what the backward pass reads."},
          {.name = "logged",
           .fallback = std::int64_t{0},
           .doc = "Forward, losses of the same logits that are logged alone."}};
}

}  // namespace

OperatorDefinition vocabulary_maximum() {
  return {.name = "vocabulary_maximum",
          .doc = "The largest logit of each token. `vocabulary_cross_entropy` counts its reading.",
          .inputs = "logits",
          .outputs = "maximum",
          .view = true,
          .infer = infer_maximum};
}

OperatorDefinition vocabulary_cross_entropy() {
  return {.name = "vocabulary_cross_entropy",
          .doc =
              "Per token the sum of exponentials and the target's logit, both less the maximum, "
              "and the exponentials. A vocabulary that is split leaves summands.",
          .inputs = "logits, maximum, targets",
          .outputs = "statistics, exponentials",
          .least_inputs = 3,
          .most_inputs = 3,
          .settings = settings("Type of the exponentials."),
          .in_place = true,
          .infer = infer_vocabulary_cross_entropy,
          .kernels = losses_kernels,
          .gradient = vocabulary_cross_entropy_backward};
}

OperatorDefinition vocabulary_cross_entropy_gradient() {
  return {.name = "vocabulary_cross_entropy_gradient",
          .doc = "The gradient of the logits, from the statistics of the whole vocabulary.",
          .inputs = "exponentials, statistics, targets",
          .outputs = "dlogits",
          .least_inputs = 3,
          .most_inputs = 3,
          .settings = settings("Type of the logits."),
          .in_place = true,
          .infer = infer_gradient,
          .kernels = loss_kernels<PassKind::kCrossEntropyBackward>};
}

OperatorDefinition vocabulary_loss() {
  return {.name = "vocabulary_loss",
          .doc = "The statistics of the whole vocabulary; the backward pass starts from them.",
          .inputs = "statistics",
          .outputs = "loss",
          .view = true,
          .loss = true,
          .infer = infer_loss,
          .gradient = loss_backward};
}

}  // namespace foreshard::operators
