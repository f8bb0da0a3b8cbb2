// libFuzzer: any text of a results file or of another rank is either refused or reads back the
// same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "sim/sweep/results.h"

FORESHARD_FUZZER(fuzz_sweep_results) {
  using namespace foreshard::sweep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto outcome = outcome_in(text)) {
    const std::string written = text_of(*outcome);
    const auto back = outcome_in(written);
    FORESHARD_CHECK(back && text_of(*back) == written);
  }
  if (const auto question = question_in(text)) {
    const std::string written = text_of(*question);
    const auto back = question_in(written);
    FORESHARD_CHECK(back && text_of(*back) == written);
  }
  return 0;
}
