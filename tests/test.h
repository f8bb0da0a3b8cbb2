/// \file
/// What every test includes: GoogleTest and its matchers, the common headers of the standard
/// library, and the value of a `Result` that must have one.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

namespace foreshard {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

/// With the catalogue that is shipped.
inline yaml::Options shipped_options() {
  return {.catalogue = {FORESHARD_SOURCE_DIR "/configs"}};
}

/// The test ends with the error's message where there is one.
/// \param what  stands before the message.
template <class T>
T value_of(Result<T> result, const std::string& what = "") {
  if (!result) throw std::runtime_error(what + ": " + result.error().message);
  return *std::move(result);
}

/// The test ends where there is none.
template <class T>
T value_of(std::optional<T> value) {
  if (!value) throw std::runtime_error("there is no value");
  return *std::move(value);
}

/// The test ends where there is none.
template <class T>
Error error_of(const Result<T>& result) {
  if (result) throw std::runtime_error("accepted");
  return result.error();
}
inline Error error_of(const Status& status) {
  if (status.ok()) throw std::runtime_error("accepted");
  return status.error();
}
/// Of an error: its code, and what is said of its message.
template <class Message>
auto Fails(Error::Code code, Message message) {  // NOLINT: named as matchers are
  return AllOf(testing::Field(&Error::code, code), testing::Field(&Error::message, message));
}

/// The error's message, or `otherwise`.
template <class T>
std::string message_of(const Result<T>& result, const std::string& otherwise = "accepted") {
  return result ? otherwise : result.error().message;
}
inline std::string message_of(const Status& status, const std::string& otherwise = "accepted") {
  return status.ok() ? otherwise : status.error().message;
}

}  // namespace foreshard
