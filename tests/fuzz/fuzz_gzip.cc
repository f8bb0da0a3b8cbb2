// Any bytes: a text of at most the given size, or an error that names the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/gzip/gzip.h"
#include "tests/fuzz/fuzzer.h"

FORESHARD_FUZZER(fuzz_gzip) {
  using namespace foreshard;
  const auto text =
      gunzip(std::string_view(reinterpret_cast<const char*>(data), size), "trace.gz", 1_MiB);
  if (!text) FORESHARD_CHECK(text.error().message.starts_with("trace.gz: "));
  if (text) FORESHARD_CHECK(text->size() <= (std::size_t{1} << 20));
  return 0;
}
