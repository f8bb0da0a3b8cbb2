// libFuzzer: any text is either refused or a measurement (or arrivals) that writes and reads back
// the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "validate/measurement/measurement.h"

FORESHARD_FUZZER(fuzz_measurement) {
  using namespace foreshard::measure;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto measurement = measurement_from_json(text)) {
    const std::string written = to_json(*measurement);
    const auto back = measurement_from_json(written);
    FORESHARD_CHECK(back && *back == *measurement && to_json(*back) == written);
    step_of(*measurement);
  }
  if (const auto arrivals = arrivals_from_json(text)) {
    const auto back = arrivals_from_json(to_json(*arrivals));
    FORESHARD_CHECK(back && *back == *arrivals);
  }
  return 0;
}
