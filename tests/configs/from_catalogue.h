/// \file
/// What the shipped catalogue has under a name.
#pragma once

#include <gtest/gtest.h>
#include <string>

#include "base/yaml/loader.h"

namespace foreshard {

/// A fault fails the test.
template <class T>
T from_catalogue(const std::string& name) {
  yaml::Loader loader({.catalogue = {FORESHARD_SOURCE_DIR "/configs"}});
  auto object = loader.read_ref<T>(name);
  EXPECT_TRUE(object) << object.error().message;
  return *std::move(object);
}

}  // namespace foreshard
