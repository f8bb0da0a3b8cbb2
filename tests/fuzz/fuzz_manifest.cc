// libFuzzer: any text is either refused or a manifest that writes and reads back the same, whose
// slices exist.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "strategies/checkpoint/manifest.h"

FORESHARD_FUZZER(fuzz_manifest) {
  using namespace foreshard::checkpoint;
  const auto manifest = manifest_from_json({reinterpret_cast<const char*>(data), size});
  if (!manifest) {
    FORESHARD_CHECK(!manifest.error().message.empty());
    return 0;
  }
  const std::string text = to_json(*manifest);
  const auto back = manifest_from_json(text);
  FORESHARD_CHECK(back && *back == *manifest && to_json(*back) == text);
  for (const TensorEntry& tensor : manifest->tensors)
    for (std::int64_t p = 0; p < tensor.layout.mesh.size(); ++p)
      FORESHARD_CHECK(slice_of(tensor.layout, tensor.shape, p).elements() >= 0);
  return 0;
}
