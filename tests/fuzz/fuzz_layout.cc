// Any bytes as a layout and as a tensor: a legal one whose text reads back as the same, or a short
// message.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "strategies/graph/layout.h"
#include "strategies/reshard/plan.h"

FORESHARD_FUZZER(fuzz_layout) {
  using namespace foreshard;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto tensor = reshard::parse_tensor(text))
    FORESHARD_CHECK(*reshard::parse_tensor(describe(*tensor)) == *tensor);
  else
    FORESHARD_CHECK(tensor.error().message.size() < 2000 + size);
  for (const Shape& shape : {Shape{}, Shape{12}, Shape{7, 64}, Shape{4, 0, 6}}) {
    const auto layout = parse_layout(text, shape);
    if (!layout) {
      FORESHARD_CHECK(layout.error().message.size() < 2000 + 2 * size);
      continue;
    }
    FORESHARD_CHECK(!fault_in(*layout, shape));
    FORESHARD_CHECK(*parse_layout(describe(*layout), shape) == *layout);
  }
  return 0;
}
