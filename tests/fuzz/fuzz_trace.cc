// Any bytes: a trace whose indices are in range, or an error that names the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "validate/profile/kineto.h"

FORESHARD_FUZZER(fuzz_trace) {
  using namespace foreshard;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto trace = profile::read_trace(text, "t.json");
  if (!trace) {
    FORESHARD_CHECK(trace.error().message.starts_with("t.json: "));
    return 0;
  }
  FORESHARD_CHECK(!trace->kernels.empty());
  const auto ranges = static_cast<std::int32_t>(trace->ranges.size());
  for (std::int32_t i = 0; i < ranges; ++i)
    FORESHARD_CHECK(trace->ranges[static_cast<std::size_t>(i)].parent < i);
  for (const auto& kernel : trace->kernels) {
    FORESHARD_CHECK(kernel.range < ranges);
    FORESHARD_CHECK(kernel.lasted >= 0_s);
    profile::product_shape(*trace, kernel);
    if (!kernel.collective) continue;
    for (const auto kind : profile::collective_kinds(*kernel.collective))
      profile::collective_bytes(*kernel.collective, kind);
  }
  return 0;
}
