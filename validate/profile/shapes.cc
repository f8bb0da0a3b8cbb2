// Shapes of products and sizes of collectives from the arguments that a trace recorded (kineto.h),
// for match.cc and the files beside it. Without recorded arguments there is no shape.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/text.h"

#include "validate/profile/kineto.h"

namespace foreshard::profile {
namespace {

using Shape = std::vector<std::int64_t>;
using program::CollectiveKind;

// A product operator: its name, the position of the first matrix among the inputs, and whether the
// second matrix is stored as n x k.
struct ProductOperator {
  std::string_view name;
  std::size_t first;
  bool transposed;
};
constexpr auto kProducts = std::to_array<ProductOperator>({
    {"aten::mm", 0, false},
    {"aten::addmm", 1, false},
    {"aten::_addmm_activation", 1, false},
    {"aten::bmm", 0, false},
    {"aten::baddbmm", 1, false},
    {"aten::_scaled_mm", 0, false},
    {"aten::matmul", 0, false},
    {"aten::linear", 0, true},
});

std::int64_t product_of(const Shape& shape, std::size_t begin, std::size_t end) {
  std::int64_t product = 1;
  for (std::size_t i = begin; i < end; ++i) product *= shape[i];
  return product;
}

std::optional<ProductShape> shape_of(Shape a, Shape b, bool transposed) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  if (transposed) std::swap(b[b.size() - 1], b[b.size() - 2]);
  const auto positive = [](std::int64_t extent) { return extent > 0 && extent < (1LL << 40); };
  if (!std::ranges::all_of(a, positive) || !std::ranges::all_of(b, positive)) return std::nullopt;
  ProductShape shape{.m = a[a.size() - 2], .n = b.back(), .k = a.back()};
  if (b[b.size() - 2] != shape.k) return std::nullopt;
  const std::int64_t rest = product_of(a, 0, a.size() - 2);
  if (b.size() == 2) {
    shape.m *= rest;  // one matrix for all: one product
  } else {
    shape.batch = rest;
  }
  return shape;
}

std::optional<double> size_of_type(std::string_view name) {
  constexpr auto kSizes = std::to_array<std::pair<std::string_view, double>>({
      {"Float", 4},
      {"BFloat16", 2},
      {"Half", 2},
      {"Double", 8},
      {"Long", 8},
      {"Int", 4},
      {"Byte", 1},
      {"Char", 1},
      {"Bool", 1},
      {"Float8_e4m3fn", 1},
      {"Float8_e5m2", 1},
  });
  const auto* found = std::ranges::find(kSizes, name, &std::pair<std::string_view, double>::first);
  if (found == kSizes.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::optional<ProductShape> product_shape(const Trace& trace, const TracedKernel& kernel) {
  for (std::int32_t at = kernel.range; at >= 0;
       at = trace.ranges[static_cast<std::size_t>(at)].parent) {
    const HostRange& range = trace.ranges[static_cast<std::size_t>(at)];
    const auto* product = std::ranges::find(kProducts, range.name, &ProductOperator::name);
    if (product == kProducts.end()) continue;
    if (range.shapes.size() < product->first + 2) return std::nullopt;
    if (auto shape = shape_of(range.shapes[product->first], range.shapes[product->first + 1],
                              product->transposed))
      return shape;
  }
  return std::nullopt;
}

std::vector<CollectiveKind> collective_kinds(const TracedCollective& collective) {
  const std::string name = lower_case(collective.name);
  if (contains(name, "coalesced")) return {};  // has several sizes
  if (contains(name, "reduce_scatter") || contains(name, "reducescatter"))
    return {CollectiveKind::kReduceScatter};
  if (contains(name, "allgather") || contains(name, "all_gather"))
    return {CollectiveKind::kAllGather};
  if (contains(name, "allreduce") || contains(name, "all_reduce"))
    return {CollectiveKind::kAllReduce};
  if (contains(name, "all_to_all") || contains(name, "alltoall"))
    return {CollectiveKind::kAllToAll, CollectiveKind::kTokenExchange};
  if (contains(name, "broadcast")) return {CollectiveKind::kBroadcast};
  if (contains(name, "send")) return {CollectiveKind::kSend};
  if (contains(name, "recv")) return {CollectiveKind::kReceive};
  return {};
}

std::optional<Bytes> collective_bytes(const TracedCollective& collective, CollectiveKind kind) {
  const auto size = size_of_type(collective.dtype);
  const std::int64_t elements =
      kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReceive
          ? collective.elements_out
          : collective.elements_in;
  if (!size || elements <= 0) return std::nullopt;
  return Bytes::from_base(*size * static_cast<double>(elements));
}

}  // namespace foreshard::profile
