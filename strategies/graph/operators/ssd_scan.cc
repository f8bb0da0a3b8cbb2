// The scan of a Mamba-2 layer (mamba.h): the causal convolution over the tokens, then the
// recurrence, computed by chunks of tokens as matrix products.
//
// Columns lie by group: for each group the values x of its heads, then B, then C. With Q tokens in
// a chunk, N columns of a state, P channels and H heads in G groups, the forward pass over a
// sequence of T tokens computes for each chunk
//
//     states   x^T B            H products  P x N x Q
//     scores   C B^T            G products  Q x Q x N
//     outputs  scores x + C S   H products  Q x P x (Q + N)
//
// which are 2 T (H P N + G Q N + H P (Q + N)) operations, and a pass over the T/Q states of each
// head in fp32. Convolution, scores and states are not saved: the backward pass computes them
// again, and has eight products of its own (the one for x joins two, with k = Q + N).
// Source: Dao and Gu, "Transformers are SSMs", arXiv 2405.21060, section 6; state-spaces/mamba,
// mamba_ssm/ops/triton/ssd_combined.py (MambaSplitConv1dScanCombinedFn), ssd_chunk_state.py,
// ssd_chunk_scan.py, ssd_bmm.py, ssd_state_passing.py.
// The rates of these kernels are not measured: products run at the rates of the library's batched
// products, passes at the rates of passes that move the same bytes.
// Not modelled: blocks of scores of later tokens, which the kernels skip; results of products over
// states in fp32, twice as wide as counted; operands that the heads of a group share, which count
// here once per head; gradients of scores, which kernels add up over heads before they write them;
// decays, which are applied beside the products; memory of scores and states while the kernels of
// one pass run.
#include <algorithm>
#include <fmt/format.h>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

constexpr std::size_t kScanInputs = 6;  // without the convolution's bias

struct ScanSizes {
  std::int64_t heads;
  std::int64_t groups;
  std::int64_t state;
  std::int64_t channels;  // channels of a head
};
ScanSizes scan_sizes_of(const Settings& settings, std::int64_t columns) {
  const std::int64_t heads = settings.integer("heads");
  const std::int64_t groups = settings.integer("groups");
  const std::int64_t state = settings.integer("state");
  return {heads, groups, state, heads > 0 ? (columns - 2 * groups * state) / heads : 0};
}

// What is wrong with the scan's inputs, which begin at input `first`; empty if nothing is.
std::string scan_fault_in(const Call& call, std::size_t first) {
  const auto shape = [&](std::size_t i) -> const Shape& { return call.inputs[first + i].shape; };
  const Shape& x = shape(0);
  if (x.size() != 3) return "needs [batch, sequence, columns], not " + text_of(x);
  const ScanSizes s = scan_sizes_of(call.settings, x[2]);
  if (s.groups < 1 || s.heads < 1 || s.heads % s.groups != 0)
    return fmt::format("{} heads do not form {} groups", s.heads, s.groups);
  if (s.state < 1 || call.settings.integer("chunk") < 1)
    return "a head has a state, and a chunk tokens: give state and chunk of 1 or more";
  if (s.channels < 1 || s.heads * s.channels + 2 * s.groups * s.state != x[2])
    return fmt::format("{} columns are not those of {} heads, and of B and C of {} in {} groups",
                       x[2], s.heads, s.state, s.groups);
  if (shape(1) != Shape{x[0], x[1], s.heads})
    return fmt::format("steps {} are not one for each head of {}", text_of(shape(1)), text_of(x));
  if (shape(2).size() != 2 || shape(2)[0] != x[2] || shape(2)[1] < 1)
    return fmt::format("the convolution's weight is [{}, tokens], not {}", x[2], text_of(shape(2)));
  for (std::size_t i = 3; i < kScanInputs; ++i)
    if (shape(i) != Shape{s.heads})
      return fmt::format("A, the bias of steps and D are one for each of {} heads, not {}", s.heads,
                         text_of(shape(i)));
  if (call.inputs.size() > first + kScanInputs && shape(kScanInputs) != Shape{x[2]})
    return fmt::format("the convolution's bias is [{}], not {}", x[2], text_of(shape(kScanInputs)));
  return {};
}

struct ScanParts {
  RuleMaker make;
  RuleMaker::Dimensions tokens;  // [batch, sequence, columns]
  RuleMaker::Dimensions taps;
  RuleMaker::Dimensions vector;

  const RuleMaker::Dimensions& of_input(std::size_t i) const {
    return i < 2 ? tokens : i == 2 ? taps : vector;
  }
};
ScanParts scan_parts_of(const Settings& settings, const Shape& x) {
  ScanParts p;
  p.tokens = {{p.make.factor(x[0], false, "batch")}, {p.make.factor(x[1], true, "sequence")}, {}};
  p.vector = {{p.make.factor(settings.integer("groups"), false, "groups")}};
  p.tokens[2] = p.vector[0];
  p.taps = {p.vector[0], {}};
  return p;
}

Result<Inferred> infer_ssd_scan(const Call& call) {
  if (const auto why = scan_fault_in(call, 0); !why.empty()) return wrong(why);
  const TensorType& x = call.inputs[0];
  const ScanSizes s = scan_sizes_of(call.settings, x.shape[2]);
  ScanParts p = scan_parts_of(call.settings, x.shape);
  for (std::size_t i = 0; i < call.inputs.size(); ++i) p.make.input(p.of_input(i));
  p.make.output(p.tokens);
  return Inferred{{{x.dtype, {x.shape[0], x.shape[1], s.heads * s.channels}}}, p.make.take()};
}

// dy, then the forward inputs -> gradients of the forward inputs.
Result<Inferred> infer_ssd_scan_gradient(const Call& call) {
  if (const auto why = scan_fault_in(call, 1); !why.empty()) return wrong(why);
  const TensorType& x = call.inputs[1];
  const ScanSizes s = scan_sizes_of(call.settings, x.shape[2]);
  if (call.inputs[0].shape != Shape{x.shape[0], x.shape[1], s.heads * s.channels})
    return wrong("gradient " + text_of(call.inputs[0].shape) + " does not fit the heads");
  ScanParts p = scan_parts_of(call.settings, x.shape);
  p.make.input(p.tokens);
  Inferred inferred;
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    p.make.input(p.of_input(i - 1));
    inferred.outputs.push_back(call.inputs[i]);
  }
  for (std::size_t i = 1; i < call.inputs.size(); ++i) p.make.output(p.of_input(i - 1));
  inferred.rule = p.make.take();
  return inferred;
}

// Builds the kernels of both passes, from the shapes on one rank.
class ScanKernels {
 public:
  ScanKernels(const Call& local, const Call& whole, std::size_t first)
      : xbc_(local.inputs[first]),
        steps_(local.inputs[first + 1].shape),
        whole_(scan_sizes_of(whole.settings, whole.inputs[first].shape[2])),
        chunk_(std::min(whole.settings.integer("chunk"), std::max<std::int64_t>(1, steps_[1]))) {}

  Kernel convolution(PassKind kind) const { return pass_over(kind, xbc_); }
  Kernel decays(PassKind kind) const {
    return Pass{
        .kind = kind, .rows = steps_[0] * steps_[1], .columns = heads(), .dtype = DType::kFp32};
  }
  Kernel states(PassKind kind) const {
    return Pass{.kind = kind,
                .rows = chunks() * heads(),
                .columns = whole_.channels * whole_.state,
                .dtype = DType::kFp32};
  }
  Kernel of_heads(std::int64_t m, std::int64_t n, std::int64_t k) const {
    return product(heads(), m, n, k);
  }
  Kernel of_groups(std::int64_t m, std::int64_t n, std::int64_t k) const {
    return product(heads() * whole_.groups / whole_.heads, m, n, k);
  }
  std::int64_t q() const { return chunk_; }
  std::int64_t n() const { return whole_.state; }
  std::int64_t p() const { return whole_.channels; }

 private:
  std::int64_t heads() const { return steps_[2]; }
  std::int64_t chunks() const { return steps_[0] * ((steps_[1] + chunk_ - 1) / chunk_); }
  Kernel product(std::int64_t each, std::int64_t m, std::int64_t n, std::int64_t k) const {
    return Gemm{.batch = chunks() * each, .m = m, .n = n, .k = k, .dtype = xbc_.dtype};
  }

  const TensorType& xbc_;
  const Shape& steps_;
  ScanSizes whole_;
  std::int64_t chunk_;
};

std::vector<Kernel> ssd_scan_kernels(const Call& local, const Call& whole) {
  const ScanKernels k(local, whole, 0);
  return {k.convolution(PassKind::kUnary),  k.decays(PassKind::kUnary),
          k.of_heads(k.p(), k.n(), k.q()),  k.states(PassKind::kUnary),
          k.of_groups(k.q(), k.q(), k.n()), k.of_heads(k.q(), k.p(), k.q() + k.n())};
}

std::vector<Kernel> ssd_scan_gradient_kernels(const Call& local, const Call& whole) {
  const ScanKernels k(local, whole, 1);
  return {// Recomputation.
          k.convolution(PassKind::kUnary), k.decays(PassKind::kUnary),
          k.of_groups(k.q(), k.q(), k.n()), k.of_heads(k.p(), k.n(), k.q()),
          k.states(PassKind::kUnary),
          // Gradients of the states: of each chunk, then passed back over the earlier chunks.
          k.of_heads(k.p(), k.n(), k.q()), k.states(PassKind::kBinary),
          // Gradients of x, of B and C through states, of scores, of B and C through scores.
          k.of_heads(k.q(), k.p(), k.q() + k.n()), k.of_heads(k.q(), k.n(), k.p()),
          k.of_heads(k.q(), k.n(), k.p()), k.of_heads(k.q(), k.q(), k.p()),
          k.of_groups(k.q(), k.n(), k.q()), k.of_groups(k.q(), k.n(), k.q()),
          // Gradients of the decays.
          k.of_heads(k.q(), k.q(), k.p()), k.decays(PassKind::kBinary),
          k.convolution(PassKind::kBinary)};
}

void ssd_scan_backward(Gradients& gradients) {
  if (!gradients.of_output(0).valid()) return;
  std::vector<TensorId> inputs{gradients.of_output(0)};
  for (const TensorId input : gradients.op().inputs) inputs.push_back(input);
  const auto parts =
      gradients.add("ssd_scan_gradient", "", std::move(inputs), gradients.op().settings);
  for (std::size_t i = 0; i < parts.size(); ++i) gradients.give(i, parts[i]);
}

std::vector<SettingDefinition> scan_settings() {
  return {{.name = "heads", .fallback = std::int64_t{1}, .required = true, .doc = "Of all."},
          {.name = "groups",
           .fallback = std::int64_t{1},
           .doc = "Of heads: those of one share B and C."},
          {.name = "state",
           .fallback = std::int64_t{1},
           .required = true,
           .doc = "Columns of a head's state, and of B and C."},
          {.name = "chunk",
           .fallback = std::int64_t{256},
           .doc = "Tokens whose part of the recurrence is computed as products."}};
}

}  // namespace

OperatorDefinition ssd_scan() {
  return {.name = "ssd_scan",
          .doc =
              "A causal convolution of each column with silu, then the recurrence of a state of "
              "each head (Mamba-2); steps pass softplus.",
          .inputs = "x_b_c, steps, taps, log_a, steps_bias, d[, taps_bias]",
          .outputs = "y",
          .least_inputs = kScanInputs,
          .most_inputs = kScanInputs + 1,
          .settings = scan_settings(),
          .infer = infer_ssd_scan,
          .kernels = ssd_scan_kernels,
          .gradient = ssd_scan_backward};
}

OperatorDefinition ssd_scan_gradient() {
  return {.name = "ssd_scan_gradient",
          .doc =
              "The gradients of `ssd_scan`, which it computes again; those of parameters are "
              "sums over samples.",
          .inputs = "dy, x_b_c, steps, taps, log_a, steps_bias, d[, taps_bias]",
          .outputs = "dx_b_c, dsteps, dtaps, dlog_a, dsteps_bias, dd[, dtaps_bias]",
          .least_inputs = kScanInputs + 1,
          .most_inputs = kScanInputs + 2,
          .settings = scan_settings(),
          .infer = infer_ssd_scan_gradient,
          .kernels = ssd_scan_gradient_kernels};
}

}  // namespace foreshard::operators
