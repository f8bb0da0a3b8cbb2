/// \file
/// What the shipped catalogue has under a name.
#pragma once

#include "tests/test.h"

namespace foreshard {

/// A fault fails the test.
template <class T>
T from_catalogue(const std::string& name) {
  yaml::Loader loader(shipped_options());
  return value_of(loader.read_ref<T>(name));
}

}  // namespace foreshard
