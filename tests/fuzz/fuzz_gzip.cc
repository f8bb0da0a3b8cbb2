// Any bytes: a text of at most the given size, or an error that names the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/gzip/gzip.h"
#include "tests/fuzz/fuzzer.h"

#ifdef FORESHARD_LIBFUZZER
#include <zlib.h>

#include "tests/fuzz/mutate.h"

// Mutates what is packed, so that checksums and lengths are right, or else the packed bytes.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  using namespace foreshard;
  const auto text = gunzip({reinterpret_cast<const char*>(data), size}, "", 64_KiB);
  if (!text || seed % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  std::string plain = fuzz::mutated(*text, 4096);
  for (unsigned i = seed / 4 % 12; i > 0 && plain.size() < 65536; --i) plain += plain;
  std::string packed(plain.size() + 1024, '\0');
  z_stream stream{};
  deflateInit2(&stream, static_cast<int>(seed % 10), Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (seed % 7 == 0) packed += packed;  // a file of two members
  return fuzz::put(packed, data, size, most);
}
#endif

FORESHARD_FUZZER(fuzz_gzip) {
  using namespace foreshard;
  const auto text =
      gunzip(std::string_view(reinterpret_cast<const char*>(data), size), "trace.gz", 1_MiB);
  if (!text) FORESHARD_CHECK(text.error().message.starts_with("trace.gz: "));
  if (text) FORESHARD_CHECK(text->size() <= (std::size_t{1} << 20));
  return 0;
}
