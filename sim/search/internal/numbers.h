/// \file
/// Tables by a handful of numbers, and numbers that stand for other values in them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/hash.h"

namespace foreshard::search {

/// Numbers values in the order in which they are met; equal ones alike.
/// Cost: that of a comparison where a value is that of the call before, else of one with each.
template <class T>
class Numbers {
 public:
  std::int64_t of(const T& value) {
    if (last_ < values_.size() && values_[last_] == value) return static_cast<std::int64_t>(last_);
    auto known = std::ranges::find(values_, value);
    if (known == values_.end()) known = values_.insert(known, value);
    last_ = static_cast<std::size_t>(known - values_.begin());
    return static_cast<std::int64_t>(last_);
  }

 private:
  std::vector<T> values_;
  std::size_t last_ = 0;
};

template <std::size_t kSize>
struct HashOfNumbers {
  std::size_t operator()(const std::array<std::int64_t, kSize>& numbers) const noexcept {
    std::uint64_t hash = kSize;
    for (const std::int64_t number : numbers)
      hash = mixed(hash ^ static_cast<std::uint64_t>(number));
    return hash;
  }
};
template <std::size_t kSize, class T>
using ByNumbers = std::unordered_map<std::array<std::int64_t, kSize>, T, HashOfNumbers<kSize>>;

}  // namespace foreshard::search
