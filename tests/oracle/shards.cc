#include "tests/oracle/shards.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "tests/oracle/boxes.h"

namespace foreshard::execute {
namespace {

// Coordinates on the partial axes: positions that agree on them and on the slice are replicas.
std::vector<std::int64_t> summand_of(const Layout& layout, std::int64_t position) {
  std::vector<std::int64_t> coordinates;
  for (const Partial& partial : layout.attribute.partial)
    coordinates.push_back(coordinate_of(layout.mesh, position, partial.axis));
  return coordinates;
}

}  // namespace

template <class T>
T identity_of(Reduction reduction) {
  using Limits = std::numeric_limits<T>;
  switch (reduction) {
    case Reduction::kMax:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case Reduction::kMin:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case Reduction::kSum:
      break;
  }
  return T{};
}

template <class T>
T reduced(Reduction reduction, T a, T b) {
  switch (reduction) {
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kMin:
      return std::min(a, b);
    case Reduction::kSum:
      break;
  }
  return a + b;
}

template <class T>
Shards<T> scatter(const Layout& layout, const Shape& shape, const std::vector<T>& whole) {
  FORESHARD_CHECK(static_cast<std::int64_t>(whole.size()) == whole_of(shape).elements());
  const Slices slices(layout, shape);
  Shards<T> shards;
  for (std::int64_t i = 0; i < layout.mesh.size(); ++i) {
    const Box slice = slices.of(i);
    const auto summand = summand_of(layout, i);
    if (std::ranges::all_of(summand, [](std::int64_t coordinate) { return coordinate == 0; }))
      shards.of_position.push_back(packed(slice, whole, whole_of(shape)));
    else
      shards.of_position.emplace_back(static_cast<std::size_t>(slice.elements()),
                                      identity_of<T>(layout.attribute.partial.front().reduction));
  }
  return shards;
}

template <class T>
std::vector<T> gather(const Layout& layout, const Shape& shape, const Shards<T>& shards) {
  const Slices slices(layout, shape);
  const Box all = whole_of(shape);
  std::vector<T> whole(static_cast<std::size_t>(all.elements()));
  // Which summands of a slice have been added.
  std::map<Box, std::map<std::vector<std::int64_t>, bool>> seen;
  for (std::int64_t i = 0; i < layout.mesh.size(); ++i) {
    const Box slice = slices.of(i);
    const auto& array = shards.of_position[static_cast<std::size_t>(i)];
    FORESHARD_CHECK(static_cast<std::int64_t>(array.size()) == slice.elements());
    auto& summands = seen[slice];
    const bool first = summands.empty();
    if (!summands.emplace(summand_of(layout, i), true).second) continue;
    for_each_row(slice, slice, all, [&](std::size_t a, std::size_t b, std::size_t length) {
      for (std::size_t k = 0; k < length; ++k)
        whole[b + k] =
            first ? array[a + k]
                  : reduced(layout.attribute.partial.front().reduction, whole[b + k], array[a + k]);
    });
  }
  return whole;
}

template <class T>
std::optional<std::string> disagreement(const Layout& layout, const Shape& shape,
                                        const Shards<T>& shards) {
  const Slices slices(layout, shape);
  std::map<std::pair<Box, std::vector<std::int64_t>>, std::int64_t> first;
  const auto rank = [&](std::int64_t position) {
    return std::to_string(layout.mesh.ranks[static_cast<std::size_t>(position)]);
  };
  for (std::int64_t i = 0; i < layout.mesh.size(); ++i) {
    const auto [known, fresh] = first.emplace(std::pair(slices.of(i), summand_of(layout, i)), i);
    if (fresh) continue;
    const auto& a = shards.of_position[static_cast<std::size_t>(known->second)];
    const auto& b = shards.of_position[static_cast<std::size_t>(i)];
    const auto where = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (where.first == a.end() && where.second == b.end()) continue;
    return "ranks " + rank(known->second) + " and " + rank(i) +
           " hold the same slice but differ at its element " +
           std::to_string(where.first - a.begin());
  }
  return std::nullopt;
}

#define FORESHARD_INSTANTIATE(T)                                                     \
  template T identity_of<T>(Reduction);                                              \
  template T reduced<T>(Reduction, T, T);                                            \
  template Shards<T> scatter<T>(const Layout&, const Shape&, const std::vector<T>&); \
  template std::vector<T> gather<T>(const Layout&, const Shape&, const Shards<T>&);  \
  template std::optional<std::string> disagreement<T>(const Layout&, const Shape&,   \
                                                      const Shards<T>&);
FORESHARD_INSTANTIATE(float)
FORESHARD_INSTANTIATE(double)
FORESHARD_INSTANTIATE(std::int64_t)
#undef FORESHARD_INSTANTIATE

}  // namespace foreshard::execute
