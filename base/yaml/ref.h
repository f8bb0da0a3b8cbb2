/// \file
/// `Ref<T>`: an object that is written in place or referred to.
///
///     device: H100-SXM            # configs/<folder of T>/H100-SXM.yaml
///     device: ./my-device.yaml    # relative to the referring file
///     device: {memory: 80 GiB}    # in place
#pragma once

#include <string>

namespace foreshard::yaml {

template <class T>
struct Ref {
  T value{};
  std::string name{};  ///< Name as referred to; empty if written in place.

  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
};

}  // namespace foreshard::yaml
