// Any bytes: collectives with positive sizes and times, or an error that names the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "validate/profile/inspector.h"

FORESHARD_FUZZER(fuzz_inspector) {
  using namespace foreshard;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  profile::is_inspector(text);
  const auto dump = profile::read_inspector(text, "dump.log");
  if (!dump) {
    FORESHARD_CHECK(dump.error().message.starts_with("dump.log:"));
    return 0;
  }
  for (const auto& one : *dump)
    FORESHARD_CHECK(one.bytes > 0_B && one.ranks >= 1 && one.time > 0_s);
  return 0;
}
