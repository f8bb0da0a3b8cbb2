/// \file
/// Copies of boxes between row-major arrays that hold other boxes of the same tensor.
#pragma once

#include <vector>

#include "base/check.h"

#include "strategies/graph/layout.h"

namespace foreshard::execute {

/// Calls `row(offset_in_a, offset_in_b, length)` for each run of neighbours along the last
/// dimension of `region`, as the arrays of the boxes `a` and `b` store it; in row-major order.
/// \pre `region` lies in both.
template <class Row>
void for_each_row(const Box& region, const Box& a, const Box& b, Row&& row) {
  if (region.empty()) return;
  const std::size_t dimensions = region.begin.size();
  FORESHARD_CHECK(intersection(region, a) == region && intersection(region, b) == region);
  std::vector<std::int64_t> at = region.begin;
  const auto offset = [&](const Box& box) {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < dimensions; ++d)
      index = index * (box.end[d] - box.begin[d]) + (at[d] - box.begin[d]);
    return static_cast<std::size_t>(index);
  };
  const std::size_t length =
      dimensions == 0 ? 1 : static_cast<std::size_t>(region.end.back() - region.begin.back());
  for (bool more = true; more;) {
    row(offset(a), offset(b), length);
    more = false;
    for (std::size_t d = dimensions; d-- > 1 && !more;) {
      more = ++at[d - 1] < region.end[d - 1];
      if (!more) at[d - 1] = region.begin[d - 1];
    }
  }
}

/// `region` of `from`, which holds the box `held`, packed.
template <class T>
std::vector<T> packed(const Box& region, const std::vector<T>& from, const Box& held) {
  std::vector<T> values(static_cast<std::size_t>(region.elements()));
  for_each_row(region, held, region, [&](std::size_t a, std::size_t b, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) values[b + i] = from[a + i];
  });
  return values;
}

}  // namespace foreshard::execute
