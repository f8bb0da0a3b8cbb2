// Studies that are hostile or no text at all; those of tests/errors/study.yaml are wrong alone.

#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli {
namespace {

// Exit code 2, one message, nothing on stdout, and nothing partly written.
void expect_refused(const std::string& text, const std::string& message) {
  const TemporaryFolder folder;
  const std::string file = folder.write("study.yaml", text).string();
  const std::string result = (folder.path() / "result.json").string();
  const std::string trace = (folder.path() / "trace.json").string();
  const Outcome outcome = foreshard("simulate '" + file + "' --format json -o '" + result +
                                    "' --trace '" + trace + "'");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("error: "));
  EXPECT_THAT(outcome.err, HasSubstr(message));
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(std::filesystem::exists(result));
  EXPECT_FALSE(std::filesystem::exists(trace));
}

TEST(BadInput, BinaryGarbage) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>((i * 197 + i / 7) % 256);
  expect_refused(bytes, "study.yaml");
}

TEST(BadInput, TenThousandDeepNesting) {
  expect_refused("cluster: " + std::string(10'000, '[') + std::string(10'000, ']') + "\n", "deep");
}

// Nine levels of ten aliases each stand for 10^9 nodes.
TEST(BadInput, AliasBomb) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string previous = "*a" + std::to_string(i - 1);
    std::string line = "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + previous;
    for (int j = 1; j < 10; ++j) line += ", " + previous;
    text += line + "]\n";
  }
  expect_refused(text, "alias");
}

}  // namespace
}  // namespace foreshard::cli
