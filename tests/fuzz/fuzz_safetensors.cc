// libFuzzer: any bytes are either refused or a safetensors header that writes and reads back the
// same, with tensors that cover the data.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/limits.h"
#include "tests/fuzz/fuzzer.h"

#include "strategies/checkpoint/safetensors.h"

FORESHARD_FUZZER(fuzz_safetensors) {
  using namespace foreshard;
  using namespace foreshard::checkpoint;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto length = safetensors_header_length(file.substr(0, 8), std::int64_t{1} << 40);
  // The first two bytes say how much data there is: a fuzzer has no gigabytes.
  if (length)
    FORESHARD_CHECK(*length >= 0 &&
                    static_cast<double>(*length) * 1_B <= limits::kSafetensorsHeader);
  if (size < 2) return 0;
  const std::int64_t data_bytes = data[0] + 256 * data[1];
  const auto header = parse_safetensors_header(file.substr(2), data_bytes);
  if (!header) {
    FORESHARD_CHECK(!header.error().message.empty());
    return 0;
  }
  std::int64_t covered = 0;
  for (const StoredTensor& tensor : header->tensors) {
    FORESHARD_CHECK(tensor.offset == covered);
    covered += *bytes_of(tensor.type, tensor.shape);
  }
  FORESHARD_CHECK(covered == data_bytes);
  const std::string text = safetensors_header(header->tensors, header->metadata);
  const auto back = parse_safetensors_header(std::string_view(text).substr(8), data_bytes);
  FORESHARD_CHECK(back && *back == *header);
  return 0;
}
