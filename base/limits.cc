#include "base/limits.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace foreshard::limits {
namespace {

constexpr const char* kVariable = "FORESHARD_LIMITS";
constexpr double kMostFactor = 1000;

// Nothing for what is no factor.
std::optional<double> factor_in(std::string_view text) {
  double factor = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(factor >= 1 && factor <= kMostFactor)) return std::nullopt;
  return factor;
}

std::optional<double> stated() {
  const char* value = std::getenv(kVariable);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value == nullptr || *value == '\0' ? std::optional(1.0) : factor_in(value);
}

}  // namespace

double factor() {
  static const double factor = stated().value_or(1);
  return factor;
}

Status fault_in_factor() {
  if (stated()) return {};
  return Error{Error::Code::kInvalidInput,
               "FORESHARD_LIMITS: must be a number from 1 to 1000, by which the limits of what is "
               "read are multiplied"};
}

}  // namespace foreshard::limits
