// Any bytes: a table whose rows are as wide as its header, or an error that names the line.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/csv.h"
#include "tests/fuzz/fuzzer.h"

FORESHARD_FUZZER(fuzz_csv) {
  const auto table =
      foreshard::read_csv(std::string_view(reinterpret_cast<const char*>(data), size), "t.csv");
  if (!table) {
    FORESHARD_CHECK(table.error().message.starts_with("t.csv:"));
    return 0;
  }
  for (const auto& row : table->rows) FORESHARD_CHECK(row.fields.size() == table->header.size());
  return 0;
}
