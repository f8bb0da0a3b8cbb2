#include "strategies/program/ir/kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/check.h"

namespace foreshard {
namespace {

struct DTypeLine {
  DType dtype;
  std::string_view name;
  Bytes size;
};

constexpr std::array kDTypes{
    DTypeLine{DType::kFp32, "fp32", 4_B},   DTypeLine{DType::kTf32, "tf32", 4_B},
    DTypeLine{DType::kFp16, "fp16", 2_B},   DTypeLine{DType::kBf16, "bf16", 2_B},
    DTypeLine{DType::kFp8, "fp8", 1_B},     DTypeLine{DType::kFp4, "fp4", 0.5_B},
    DTypeLine{DType::kInt8, "int8", 1_B},   DTypeLine{DType::kInt32, "int32", 4_B},
    DTypeLine{DType::kInt64, "int64", 8_B},
};

const DTypeLine& line_of(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  FORESHARD_CHECK(index < kDTypes.size() && kDTypes[index].dtype == dtype);
  return kDTypes[index];
}

// In the order of Scales.
constexpr std::array<std::string_view, 3> kScales{"tensor", "blocks", "vectors"};
// In the order of AttentionImplementation.
constexpr std::array<std::string_view, 6> kAttentions{"fused",   "unfused", "triton-flash-1",
                                                      "flash-2", "flash-3", "cudnn"};

// In the order of PassKind. A dropout mask is one byte an element; statistics kept for the backward
// pass are one or two numbers a row and not counted. The arithmetic counts one for each +, * or
// comparison and, by convention, one for each special function (exp, erf, rsqrt).
constexpr std::array kPasses{
    //          kind                              name            read wrote  +bytes  flops
    PassTraffic{PassKind::kLayerNormForward, "layer_norm_fwd", 1, 1, 0, 0, 8},
    PassTraffic{PassKind::kLayerNormBackward, "layer_norm_bwd", 2, 1, 0, 0, 14},
    PassTraffic{PassKind::kRmsNormForward, "rms_norm_fwd", 1, 1, 0, 0, 5},
    PassTraffic{PassKind::kRmsNormBackward, "rms_norm_bwd", 2, 1, 0, 0, 10},
    PassTraffic{PassKind::kGeluForward, "gelu_fwd", 1, 1, 0, 0, 9},
    PassTraffic{PassKind::kGeluBackward, "gelu_bwd", 2, 1, 0, 0, 16},
    PassTraffic{PassKind::kSwigluForward, "swiglu_fwd", 2, 1, 0, 0, 5},
    PassTraffic{PassKind::kSwigluBackward, "swiglu_bwd", 3, 2, 0, 0, 10},
    PassTraffic{PassKind::kSoftmaxForward, "softmax_fwd", 1, 1, 0, 0, 6},
    PassTraffic{PassKind::kSoftmaxBackward, "softmax_bwd", 2, 1, 0, 0, 5},
    PassTraffic{PassKind::kLongSoftmaxForward, "long_softmax_fwd", 1, 1, 0, 0, 6},
    PassTraffic{PassKind::kLongSoftmaxBackward, "long_softmax_bwd", 2, 1, 0, 0, 5},
    PassTraffic{PassKind::kDropoutForward, "dropout_fwd", 1, 1, 0, 1, 3},
    PassTraffic{PassKind::kDropoutBackward, "dropout_bwd", 1, 1, 1, 0, 2},
    // Reads the product and the residual; the bias is one row.
    PassTraffic{PassKind::kBiasDropoutAddForward, "bias_dropout_add_fwd", 2, 1, 0, 1, 5},
    // The residual's gradient is the incoming gradient itself: no bytes.
    PassTraffic{PassKind::kBiasDropoutAddBackward, "bias_dropout_add_bwd", 1, 1, 1, 0, 2},
    PassTraffic{PassKind::kResidualAdd, "residual_add", 2, 1, 0, 0, 1},
    PassTraffic{PassKind::kBiasAdd, "bias_add", 1, 1, 0, 0, 1},
    PassTraffic{PassKind::kBiasGradient, "bias_grad", 1, 0, 0, 0, 1},
    PassTraffic{PassKind::kRopeForward, "rope_fwd", 1, 1, 0, 0, 3},
    PassTraffic{PassKind::kRopeBackward, "rope_bwd", 1, 1, 0, 0, 3},
    PassTraffic{PassKind::kTranspose, "transpose", 1, 1, 0, 0, 0},
    PassTraffic{PassKind::kEmbeddingForward, "embedding_fwd", 1, 1, 0, 0, 0},
    // Reads the incoming gradient, and reads and writes the table's rows that it adds to.
    PassTraffic{PassKind::kEmbeddingBackward, "embedding_bwd", 2, 1, 0, 0, 1},
    // Two reads (maximum, then sum of exponentials); the softmax is kept in fp32 for the backward
    // pass.
    PassTraffic{PassKind::kCrossEntropyForward, "cross_entropy_fwd", 2, 0, 0, 4, 6},
    PassTraffic{PassKind::kCrossEntropyBackward, "cross_entropy_bwd", 0, 1, 4, 0, 2},
    PassTraffic{PassKind::kGradientAccumulate, "grad_accumulate", 1, 0, 4, 4, 1},
    PassTraffic{PassKind::kGradientNorm, "grad_norm", 0, 0, 4, 0, 2},
    // fp32 gradient, parameter and two moments in; parameter, moments and the working copy out.
    PassTraffic{PassKind::kAdam, "adam", 0, 1, 16, 12, 16},
    PassTraffic{PassKind::kCast, "cast", 1, 0, 0, 4, 0},
    PassTraffic{PassKind::kZero, "zero", 0, 1, 0, 0, 0},
    PassTraffic{PassKind::kTokenPermute, "token_permute", 1, 1, 0, 0, 0},
    PassTraffic{PassKind::kUnary, "unary", 1, 1, 0, 0, 1},
    PassTraffic{PassKind::kBinary, "binary", 2, 1, 0, 0, 1},
    PassTraffic{PassKind::kTernary, "ternary", 3, 1, 0, 0, 2},
    PassTraffic{PassKind::kReduce, "reduce", 1, 0, 0, 0, 1},
    PassTraffic{PassKind::kExpand, "expand", 0, 1, 0, 0, 1},
    PassTraffic{PassKind::kStatistics, "statistics", 1, 0, 0, 0, 3},
    PassTraffic{PassKind::kTopK, "top_k", 1, 0, 0, 0, 2},
    PassTraffic{PassKind::kQuantize, "quantize", 1, 0, 0, 1, 2},
    PassTraffic{PassKind::kQuantizeFp4, "quantize_fp4", 1, 0, 0, 0.5, 2},
    PassTraffic{PassKind::kQuantizeFp4Twice, "quantize_fp4_twice", 1, 0, 0, 1, 4},
    PassTraffic{PassKind::kQuantizeTwice, "quantize_twice", 1, 0, 0, 2, 4},
    PassTraffic{PassKind::kQuantizeTranspose, "quantize_transpose", 1, 0, 0, 2, 2},
    PassTraffic{PassKind::kDequantizeNf4, "dequantize_nf4", 0, 1, 0.5, 0, 2},
    // fp32 gradient, parameter and two moments in; moments and the direction out.
    PassTraffic{PassKind::kLambUpdate, "lamb_update", 0, 0, 16, 12, 14},
    // Parameter and direction in; parameter and the working copy out.
    PassTraffic{PassKind::kLambApply, "lamb_apply", 0, 1, 8, 4, 2},
    // fp32 gradient, parameter and momentum in; parameter, momentum and the working copy out.
    PassTraffic{PassKind::kOptimizer, "momentum", 0, 1, 12, 8, 4},
};

double count(std::int64_t n) {
  return static_cast<double>(n);
}

Flops flops_of_kernel(const Attention& a) {
  return 2.0 * scores_per_query(a) * count(a.batch) * count(a.query_heads) * count(a.query_length) *
         count(widths_of_products(a)) * 1_FLOP;
}
Flops flops_of_kernel(const Gemm& g) {
  return 2.0 * count(g.batch) * count(g.m) * count(g.n) * count(g.k) * 1_FLOP;
}
Flops flops_of_kernel(const Pass& p) {
  return count(p.rows) * count(p.columns) * traffic_of(p.kind).flops * 1_FLOP;
}

Bytes bytes_of_kernel(const Gemm& g) {
  // fp8, fp4 and int8 products leave the tensor cores as 2-byte numbers.
  const Bytes in = size_of(g.dtype);
  const Bytes out = in < 2_B ? 2_B : in;
  const Bytes result = g.accumulate ? 2 * size_of(DType::kFp32) : out;
  return count(g.batch) * ((count(g.m) * count(g.k) + count(g.k) * count(g.n)) * in +
                           count(g.m) * count(g.n) * result);
}
Bytes bytes_of_kernel(const Attention& a) {
  const Bytes element = size_of(a.dtype);
  const double widths = count(a.head_dim + a.value_width());
  const Bytes queries =
      count(a.batch) * count(a.query_heads) * count(a.query_length) * widths * element;
  const Bytes keys = count(a.batch) * count(a.kv_heads) * count(a.key_length) * widths * element;
  // Forward: Q, K, V in, O out. Backward: Q, O, dO, K, V in, dQ, dK, dV out.
  return a.direction == Direction::kForward ? queries + keys : 2 * queries + 2 * keys;
}
Bytes bytes_of_kernel(const Pass& p) {
  const PassTraffic& line = traffic_of(p.kind);
  Bytes each = (line.read_elements + line.written_elements) * size_of(p.dtype) +
               (line.other_bytes_read + line.other_bytes_written) * 1_B;
  // States are both read and written.
  if (p.state_bytes > 0) each += 2.0 * (p.state_bytes * 1_B - line.other_bytes_written * 1_B);
  return count(p.rows) * count(p.columns) * each;
}

std::string times(std::int64_t a, std::int64_t b) {
  return std::to_string(a) + "x" + std::to_string(b);
}

std::string describe_kernel(const Gemm& g) {
  std::string text = "gemm " + times(g.m, g.n) + "x" + std::to_string(g.k);
  if (g.batch != 1) text += " batch " + std::to_string(g.batch);
  text += " " + std::string(name_of(g.dtype));
  if (g.accumulate) text += " accumulate";
  if (g.scales != Scales::kTensor) text += " scaled " + std::string(name_of(g.scales));
  if (g.apart) text += " apart";
  if (!g.matrix_units) text += " vector";
  return text;
}
std::string describe_kernel(const Attention& a) {
  std::string text = a.direction == Direction::kForward ? "attention_fwd " : "attention_bwd ";
  text += times(a.batch, a.query_heads) + "/" + std::to_string(a.kv_heads) + " seq " +
          times(a.query_length, a.key_length) + " dim " + std::to_string(a.head_dim);
  if (a.value_width() != a.head_dim) text += "/" + std::to_string(a.value_dim);
  if (a.causal) text += " causal";
  if (a.window > 0) text += " window " + std::to_string(a.window);
  if (a.sample > 0) text += " sample " + std::to_string(a.sample);
  text += " " + std::string(name_of(a.dtype));
  if (a.implementation != AttentionImplementation::kFused)
    text += " " + std::string(name_of(a.implementation));
  return text;
}
std::string describe_kernel(const Pass& p) {
  return std::string(traffic_of(p.kind).name) + " " + times(p.rows, p.columns) + " " +
         std::string(name_of(p.dtype)) +
         (p.state_bytes > 0 ? " of " + std::to_string(p.state_bytes) + " bytes" : "") +
         (p.launches > 1 ? " in " + std::to_string(p.launches) + " launches" : "");
}

}  // namespace

double scores_per_query(const Attention& a) {
  const double keys = count(a.sample > 0 ? std::min(a.sample, a.key_length) : a.key_length);
  if (!a.causal) return keys;
  const double seen = a.window > 0 ? std::min(count(a.window), keys) : keys;
  return keys > 0 ? seen - seen * seen / (2 * keys) : 0;
}

std::int64_t widths_of_products(const Attention& a) {
  return a.direction == Direction::kForward ? a.head_dim + a.value_width()
                                            : 3 * a.head_dim + 2 * a.value_width();
}

std::string_view name_of(DType dtype) {
  return line_of(dtype).name;
}
std::optional<DType> find_dtype(std::string_view name) {
  const auto* const line = std::ranges::find(kDTypes, name, &DTypeLine::name);
  if (line == kDTypes.end()) return std::nullopt;
  return line->dtype;
}
std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  names.reserve(kDTypes.size());
  for (const DTypeLine& line : kDTypes) names.emplace_back(line.name);
  return names;
}
Bytes size_of(DType dtype) {
  return line_of(dtype).size;
}

bool has_aligned_rows(const Gemm& gemm) {
  constexpr double kLoad = 16;  // bytes
  const double bytes = size_of(gemm.dtype) / 1_B;
  const auto loads = [&](std::int64_t row) { return std::fmod(count(row) * bytes, kLoad) == 0; };
  return bytes >= 4 || (loads(gemm.n) && loads(gemm.accumulate ? gemm.m : gemm.k));
}

std::string_view name_of(Scales scales) {
  return kScales.at(static_cast<std::size_t>(scales));
}

std::optional<Scales> find_scales(std::string_view name) {
  const auto it = std::ranges::find(kScales, name);
  if (it == kScales.end()) return std::nullopt;
  return static_cast<Scales>(it - kScales.begin());
}

std::string_view name_of(AttentionImplementation implementation) {
  return kAttentions.at(static_cast<std::size_t>(implementation));
}

std::optional<AttentionImplementation> find_attention(std::string_view name) {
  const auto it = std::ranges::find(kAttentions, name);
  if (it == kAttentions.end()) return std::nullopt;
  return static_cast<AttentionImplementation>(it - kAttentions.begin());
}

PassKind softmax_alone(Direction direction, std::int64_t columns) {
  constexpr std::int64_t kInOneWarp = 1024;
  const bool forward = direction == Direction::kForward;
  if (columns > kInOneWarp)
    return forward ? PassKind::kLongSoftmaxForward : PassKind::kLongSoftmaxBackward;
  return forward ? PassKind::kSoftmaxForward : PassKind::kSoftmaxBackward;
}

const PassTraffic& traffic_of(PassKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  FORESHARD_CHECK(index < kPasses.size() && kPasses[index].kind == kind);
  return kPasses[index];
}

const PassTraffic* find_pass(std::string_view name) {
  for (const PassTraffic& line : kPasses)
    if (line.name == name) return &line;
  return nullptr;
}

Flops flops_of(const Kernel& kernel) {
  return std::visit([](const auto& k) { return flops_of_kernel(k); }, kernel);
}
Bytes bytes_of(const Kernel& kernel) {
  return std::visit([](const auto& k) { return bytes_of_kernel(k); }, kernel);
}
std::string describe(const Kernel& kernel) {
  return std::visit([](const auto& k) { return describe_kernel(k); }, kernel);
}

}  // namespace foreshard
