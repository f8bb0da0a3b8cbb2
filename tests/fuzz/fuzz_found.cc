// Any bytes as the result of a search: refused in words, or explained as text and as JSON,
// whichever strategy stands second.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/mutate.h"

#include "sim/search/explain.h"

FORESHARD_MUTATES_JSON;

FORESHARD_FUZZER(fuzz_found) {
  using namespace foreshard;
  const auto result =
      search::read_result(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!result) {
    FORESHARD_CHECK(!result.error().message.empty());
    return 0;
  }
  for (std::size_t i = 1; i < std::max<std::size_t>(result->found.simulated.size(), 2); ++i) {
    const auto other = search::beside(*result, i);
    FORESHARD_CHECK(!search::explanation_text(other).empty());
    FORESHARD_CHECK(schema_in(search::explanation_json(other)) == "foreshard.explanation/1");
  }
  return 0;
}
