// Any bytes, in every dimension: a finite value whose exact text reads back, or a short message.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "base/quantity.h"
#include "tests/fuzz/fuzzer.h"

FORESHARD_FUZZER(fuzz_quantity) {
  using namespace foreshard;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (std::size_t i = 0; i < kDimensions; ++i) {
    const auto dimension = static_cast<Dimension>(i);
    const auto read = parse_quantity(text, dimension);
    if (const auto* fault = std::get_if<QuantityFault>(&read)) {
      FORESHARD_CHECK(fault->what.size() + fault->help.size() < 1000);
      continue;
    }
    const double value = std::get<double>(read);
    FORESHARD_CHECK(std::isfinite(value));
    FORESHARD_CHECK(!format_quantity(value, dimension).empty());
    const auto back = parse_quantity(format_quantity_exact(value, dimension), dimension);
    FORESHARD_CHECK(std::get<double>(back) == value);
  }
  return 0;
}
