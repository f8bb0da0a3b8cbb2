// libFuzzer: any bytes are refused with a reason, or read as a model whose values are consistent.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "strategies/graph/onnx/model.h"

FORESHARD_FUZZER(fuzz_onnx) {
  using namespace foreshard::onnx_file;
  const auto model = read_onnx({reinterpret_cast<const char*>(data), size},
                               {.dims = {{"sequence", 4}}, .batch = 2});
  if (!model) {
    FORESHARD_CHECK(!model.error().message.empty());
    return 0;
  }
  for (const Value& value : model->values) {
    std::int64_t count = 1;
    for (const std::int64_t extent : value.shape) {
      FORESHARD_CHECK(extent >= 0);
      count *= extent;
    }
    if (!value.numbers) continue;
    const auto known = std::visit([](const auto& each) { return each.size(); }, *value.numbers);
    FORESHARD_CHECK(known == static_cast<std::size_t>(count));
  }
  return 0;
}
