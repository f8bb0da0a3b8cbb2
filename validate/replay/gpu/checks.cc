#include "validate/replay/gpu/checks.h"

#include <array>
#include <cmath>
#include <string_view>

#include "validate/replay/gpu/attention.h"
#include "validate/replay/gpu/check_harness.h"
#include "validate/replay/gpu/cuda_error.h"
#include "validate/replay/gpu/passes.h"

namespace foreshard::replay::gpu {
namespace {

std::optional<std::string> fault(cudaError_t status) {
  if (status == cudaSuccess) return std::nullopt;
  return said(status);
}

// By operand: t the kernel's dtype, f fp32, m a mask.
std::string_view stores_of(PassKind kind) {
  switch (kind) {
    case PassKind::kLayerNormForward:
    case PassKind::kRmsNormForward:
      return "ttft";
    case PassKind::kLayerNormBackward:
    case PassKind::kRmsNormBackward:
      return "tttftf";
    case PassKind::kDropoutForward:
      return "ttm";
    case PassKind::kDropoutBackward:
    case PassKind::kBiasDropoutAddBackward:
      return "tmt";
    case PassKind::kBiasDropoutAddForward:
      return "ttttm";
    case PassKind::kBiasGradient:
    case PassKind::kGradientAccumulate:
    case PassKind::kCast:
    case PassKind::kReduce:
    case PassKind::kStatistics:
    case PassKind::kTopK:
      return "tf";
    case PassKind::kRopeForward:
    case PassKind::kRopeBackward:
      return "tft";
    case PassKind::kCrossEntropyForward:
      return "tff";
    case PassKind::kCrossEntropyBackward:
    case PassKind::kExpand:
      return "ft";
    case PassKind::kGradientNorm:
      return "ff";
    case PassKind::kAdam:
      return "fffft";
    case PassKind::kOptimizer:
      return "ffft";
    default:
      return "tttt";
  }
}

std::optional<std::string> check(const Pass& pass) {
  const Pass run = in_floating_point(pass);
  std::vector<Stored> stores;
  const auto operands = operands_of(Kernel(pass));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const char letter = stores_of(pass.kind)[i];
    stores.push_back(letter == 'f'   ? Stored::kFp32
                     : letter == 'm' ? Stored::kByte
                                     : stored_as(run.dtype));
  }
  Arrays want = inputs_for(operands, stores);
  if (pass.kind == PassKind::kAdam)  // a second moment is not negative
    for (double& value : want[3]) value = static_cast<double>(static_cast<float>(std::abs(value)));
  Arrays got = want;
  if (auto wrong = on_device(stores, got, [&](std::span<void* const> pointers) {
        return fault(launch_pass(pass, pointers, nullptr));
      }))
    return wrong;
  const bool drops =
      pass.kind == PassKind::kDropoutForward || pass.kind == PassKind::kBiasDropoutAddForward;
  if (drops) {  // which elements are kept is the kernel's choice, one in ten is not
    const std::vector<double>& mask = got.back();
    want.back() = mask;
    double kept = 0;
    for (const double m : mask) kept += m;
    const double share = kept / static_cast<double>(mask.size());
    if (mask.size() > 1000 && std::abs(share - 0.9) > 0.05)
      return "the mask keeps " + std::to_string(share) + " of the elements, not 0.9";
  }
  compute(pass, want);
  // Sums over rows add rounding in fp32; results near zero are differences of larger numbers.
  return difference(stores, got, want, 1.5, 2e-3);
}

std::optional<std::string> check(const Attention& a) {
  const auto operands = operands_of(Kernel(a));
  const bool backward = a.direction == Direction::kBackward;
  const Stored stored = stored_as(a.dtype);
  std::vector<Stored> stores(operands.size(), stored);
  if (backward)
    stores[5] = stores[6] = stores[7] = Stored::kFp32;
  else
    stores[4] = Stored::kFp32;
  Arrays want = inputs_for(operands, stores);
  if (backward) {  // o and the logarithms belong to q, k and v
    Attention forward = a;
    forward.direction = Direction::kForward;
    Arrays first = {want[0], want[1], want[2], want[3], want[5]};
    compute(forward, first);
    want[3] = first[3];
    want[5] = first[4];
    for (double& value : want[3]) value = as_stored(stored, value);
  }
  Arrays got = want;
  if (auto wrong = on_device(stores, got, [&](std::span<void* const> pointers) {
        return fault(launch_attention(a, pointers, nullptr));
      }))
    return wrong;
  compute(a, want);
  // Probabilities and their gradients are rounded to the dtype before they meet the next product;
  // errors of single terms add up against the size of the inputs, not of the result.
  const double absolute = step_of(stored) * 4;
  return difference(stores, got, want, 8, absolute);
}

}  // namespace

std::vector<Check> pass_checks() {
  struct Shape {
    std::int64_t rows;
    std::int64_t columns;
  };
  // Rows for four lanes, a warp and a block; lengths that are no multiple of a pack; odd ones.
  constexpr std::array kShapes{Shape{37, 24},  Shape{5, 256}, Shape{9, 130}, Shape{3, 2056},
                               Shape{2, 1101}, Shape{1, 1},   Shape{70, 33}};
  std::vector<Check> checks;
  for (int kind = 0; kind <= static_cast<int>(PassKind::kOptimizer); ++kind)
    for (const DType dtype : {DType::kFp32, DType::kBf16, DType::kFp16, DType::kFp8})
      for (const Shape& shape : kShapes) {
        const Pass pass{static_cast<PassKind>(kind), shape.rows, shape.columns, dtype};
        if (dtype == DType::kFp8 && shape.columns != 24) continue;  // its own rounding is coarse
        checks.push_back({describe(Kernel(pass)), [pass] { return check(pass); }});
      }
  return checks;
}

std::vector<Check> attention_checks() {
  using A = Attention;
  constexpr auto kForward = Direction::kForward;
  constexpr auto kBackward = Direction::kBackward;
  std::vector<Check> checks;
  for (const Direction direction : {kForward, kBackward})
    for (const A& a : {
             A{1, 1, 1, 64, 64, 64, false, direction, DType::kBf16},
             A{1, 2, 1, 128, 128, 128, true, direction, DType::kBf16},
             A{2, 4, 2, 100, 100, 64, true, direction, DType::kFp16},
             A{1, 1, 1, 40, 150, 128, true, direction, DType::kBf16},
             A{1, 1, 1, 150, 40, 64, true, direction, DType::kFp16},  // some queries see nothing
             A{1, 2, 2, 33, 70, 80, false, direction, DType::kFp16},
             A{1, 1, 1, 200, 200, 40, true, direction, DType::kBf16},
         })
      checks.push_back({describe(Kernel(a)), [a] { return check(a); }});
  return checks;
}

}  // namespace foreshard::replay::gpu
