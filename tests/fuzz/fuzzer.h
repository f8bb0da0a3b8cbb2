/// \file
/// FORESHARD_FUZZER(name) { ... } is what one fuzzer does with any bytes, which it sees as `data`
/// and `size`. libFuzzer (`tools/fuzz`) takes it as its entry point; fuzz_corpus_test, which every
/// compiler builds, runs it on the files of tests/fuzz/corpus/<name>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard::fuzz {

using Fuzzer = int (*)(const std::uint8_t* data, std::size_t size);

/// The fuzzers that are linked into this program, by name.
inline std::map<std::string, Fuzzer>& fuzzers() {
  static std::map<std::string, Fuzzer> all;
  return all;
}

/// The parts of a text between separators; at least one.
inline std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

}  // namespace foreshard::fuzz

#ifdef FORESHARD_LIBFUZZER
#define FORESHARD_FUZZER(name) \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#else
#define FORESHARD_FUZZER(name)                                                                  \
  static int name(const std::uint8_t* data, std::size_t size);                                  \
  static const bool name##_is_listed = foreshard::fuzz::fuzzers().emplace(#name, &name).second; \
  static int name(const std::uint8_t* data, std::size_t size)
#endif
