/// \file
/// Caches whose keys are a few numbers, and numbers that stand for other values in such keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/hash.h"

namespace foreshard::search {

/// Numbers values in the order in which they are met; equal values get the same number.
/// Cost: a comparison where the value is the same as in the call before, else a look-up.
template <class T>
class Numbers {
 public:
  std::int64_t of(const T& value) {
    if (last_ == nullptr || *last_ != value) {
      const auto known =
          numbers_.try_emplace(value, static_cast<std::int64_t>(numbers_.size())).first;
      last_ = &known->first;
      number_ = known->second;
    }
    return number_;
  }

 private:
  std::map<T, std::int64_t> numbers_;
  const T* last_ = nullptr;
  std::int64_t number_ = 0;
};

struct HashOfNumbers {
  std::size_t operator()(const auto& numbers) const noexcept {
    std::uint64_t hash = numbers.size();
    for (const std::int64_t number : numbers)
      hash = mixed(hash ^ static_cast<std::uint64_t>(number));
    return hash;
  }
};
template <std::size_t kSize, class T>
using ByNumbers = std::unordered_map<std::array<std::int64_t, kSize>, T, HashOfNumbers>;

/// Keys of several lengths.
template <class T>
using ByKey = std::unordered_map<std::vector<std::int64_t>, T, HashOfNumbers>;

}  // namespace foreshard::search
