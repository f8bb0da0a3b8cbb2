/// \file
/// What the shipped catalogue has under a name.
#pragma once

#include "tests/test.h"

namespace foreshard {

/// A fault fails the test.
template <class T>
T from_catalogue(const std::string& name) {
  return value_of(yaml::Loader(shipped_options()).read_ref<T>(name));
}

}  // namespace foreshard
