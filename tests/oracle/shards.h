/// \file
/// Arrays in memory as the ranks of a layout hold them: one array for each position of the mesh, in
/// row-major order of its slice (Box). Elements are the values of the logical tensor, so that a
/// resharding of int64 is exact and one of float rounds where it reduces.
///
/// Instantiated for float, double and std::int64_t.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strategies/graph/layout.h"

namespace foreshard::execute {

template <class T>
struct Shards {
  std::vector<std::vector<T>> of_position{};  ///< By index into the mesh's ranks.
  bool operator==(const Shards&) const = default;
};

/// What changes no value when it is reduced with it: 0, or the lowest or highest there is.
template <class T>
T identity_of(Reduction reduction);

/// `a` reduced with `b`.
template <class T>
T reduced(Reduction reduction, T a, T b);

/// The slices of `whole`. Of a partial layout the first coordinate on its partial axes gets the
/// values, all others the identity.
/// \pre `fault_in(layout, shape)` is empty; `whole` has all elements of `shape`, row-major.
template <class T>
Shards<T> scatter(const Layout& layout, const Shape& shape, const std::vector<T>& whole);

/// The tensor that the shards are slices of: of replicas the first position's, of summands their
/// reduction in ascending order of positions.
/// \pre as `scatter`; every array has the size of its slice.
template <class T>
std::vector<T> gather(const Layout& layout, const Shape& shape, const Shards<T>& shards);

/// Where two replicas differ, in words; nothing if none do. Summands are replicas only of the same
/// coordinates on the partial axes.
/// \pre as `gather`.
template <class T>
std::optional<std::string> disagreement(const Layout& layout, const Shape& shape,
                                        const Shards<T>& shards);

}  // namespace foreshard::execute
