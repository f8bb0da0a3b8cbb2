/// \file
/// `Sourced<T>`: a number of the catalogue together with where it comes from.
///
///     peak: {value: 989 TFLOP/s, source: "NVIDIA H100 datasheet", evidence: datasheet}
///     peak: 900 TFLOP/s              # the user's own: evidence `user`
#pragma once

#include <cstdint>
#include <string>

#include "base/yaml/names.h"

namespace foreshard::yaml {

/// From the most to the least certain; `kUser` is given by the user.
enum class Evidence : std::uint8_t { kMeasured, kFitted, kTransferred, kDatasheet, kUser };

const Names<Evidence>& yaml_names(const Evidence*);

template <class T>
struct Sourced {
  T value{};
  std::string source{};  ///< Empty for `kUser`.
  Evidence evidence = Evidence::kUser;

  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
  bool operator==(const Sourced&) const = default;
};

}  // namespace foreshard::yaml
