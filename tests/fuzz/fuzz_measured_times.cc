// Any bytes: a table that reads back as it is written, or an error that names the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "sim/study/measured_times.h"

FORESHARD_FUZZER(fuzz_measured_times) {
  using namespace foreshard;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto times = study::read_measured_times(text, "ops.csv");
  if (!times) {
    FORESHARD_CHECK(times.error().message.starts_with("ops.csv"));
    return 0;
  }
  const auto again = study::read_measured_times(study::to_csv(*times), "ops.csv");
  FORESHARD_CHECK(again && again->rows.size() == times->rows.size());
  FORESHARD_CHECK(study::to_csv(*again) == study::to_csv(*times));
  return 0;
}
