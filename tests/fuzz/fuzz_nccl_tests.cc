// Any bytes: a run whose rows have sizes and times, or an error that names the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "validate/calibrate/nccl_tests.h"

FORESHARD_FUZZER(fuzz_nccl_tests) {
  using namespace foreshard::calibrate;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  is_nccl_tests(text);
  const auto run = read_nccl_tests(text, "all_reduce_perf.txt");
  if (!run) {
    FORESHARD_CHECK(run.error().message.starts_with("all_reduce_perf.txt:"));
    return 0;
  }
  FORESHARD_CHECK(!run->rows.empty() && !run->ranks.empty() && run->nodes() >= 1);
  const auto table = table_of(*run, "f", "m");
  FORESHARD_CHECK(table.rows.size() <= run->rows.size());
  for (const auto& row : table.rows) FORESHARD_CHECK(row.fields.size() == table.header.size());
  return 0;
}
