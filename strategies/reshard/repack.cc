#include "strategies/reshard/repack.h"

#include <algorithm>

namespace foreshard::reshard {
namespace {

// The largest extent of a dimension's slices.
std::int64_t widest(const Slices& slices, std::size_t dim) {
  const auto& bounds = slices.bounds(dim);
  std::int64_t extent = 0;
  for (std::size_t i = 1; i < bounds.size(); ++i)
    extent = std::max(extent, bounds[i] - bounds[i - 1]);
  return extent;
}

// Whether slices of `holder` are cut into slices of `other`, or joined from them, along a dimension
// that an earlier dimension with more than one index precedes.
bool scattered(const Slices& holder, const Slices& other, std::size_t dimensions) {
  std::int64_t outer = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (outer > 1 && holder.bounds(d) != other.bounds(d) && widest(holder, d) > 1) {
      // Cut finer: a bound of `other` lies within a slice of `holder`.
      const auto& own = holder.bounds(d);
      for (const std::int64_t bound : other.bounds(d))
        if (!std::binary_search(own.begin(), own.end(), bound)) return true;
    }
    outer *= widest(holder, d);
  }
  return false;
}

}  // namespace

Repack repack_of(const Step& step, const TensorSpec& tensor) {
  const Slices from(step.from, tensor.shape);
  const Slices to(step.to, tensor.shape);
  const std::size_t dimensions = tensor.shape.size();
  const bool cuts = scattered(from, to, dimensions);
  const bool joins = scattered(to, from, dimensions);
  switch (step.primitive) {
    case Primitive::kAllReduce:
    case Primitive::kBroadcast:
      return {};
    case Primitive::kAllGather:
      return {.after = joins ? to.largest() : 0};
    case Primitive::kReduceScatter:
      return {.before = cuts ? from.largest() : 0};
    case Primitive::kAllToAll:
    case Primitive::kTransfer:
      return {.before = cuts ? from.largest() : 0, .after = joins ? to.largest() : 0};
    case Primitive::kSlice:
      return {.after = cuts ? to.largest() : 0};
    case Primitive::kPad:
      return {.after = to.largest()};
  }
  return {};
}

}  // namespace foreshard::reshard
