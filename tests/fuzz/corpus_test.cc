// What a fuzzer once found stays found: every fuzzer reads the files of its corpus, each of them
// cut short, and nothing at all, through the entry point that libFuzzer calls.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "tests/fuzz/fuzzer.h"

namespace foreshard::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = FORESHARD_SOURCE_DIR "/tests/fuzz/corpus";
constexpr std::size_t kCuts = 16;

// Copies the bytes to memory of their own, so that a read beyond them is one beyond an allocation.
void run(Fuzzer fuzzer, std::string_view text) {
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  fuzzer(bytes.data(), bytes.size());
}

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, IsRead) {
  const Fuzzer fuzzer = fuzzers().at(GetParam());
  run(fuzzer, "");
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(kCorpus / GetParam())) {
    SCOPED_TRACE(entry.path().filename().string());
    const auto text = read_file(entry.path(), 4_MiB);
    ASSERT_TRUE(text) << text.error().message;
    run(fuzzer, *text);
    for (std::size_t i = 1; i < kCuts; ++i) run(fuzzer, text->substr(0, i * text->size() / kCuts));
    ++files;
  }
  EXPECT_GT(files, 0u) << "no inputs in tests/fuzz/corpus/" << GetParam();
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, fuzzer] : fuzzers()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(names()),
                         [](const auto& one) { return one.param; });

TEST(FuzzCorpus, BelongsToFuzzers) {
  for (const auto& entry : fs::directory_iterator(kCorpus))
    EXPECT_TRUE(fuzzers().contains(entry.path().filename().string())) << entry.path();
}

}  // namespace
}  // namespace foreshard::fuzz
