#include "base/shell_words.h"

#include "tests/test.h"

namespace foreshard {
namespace {

std::vector<std::string> words(const std::string& text) {
  const auto cut = shell_words(text);
  return cut ? *cut : std::vector<std::string>{cut.error().message};
}

TEST(ShellWords, AreSeparatedByBlanksAndLineEnds) {
  EXPECT_THAT(words("  mpirun\t-n 4\n-x  "), ElementsAre("mpirun", "-n", "4", "-x"));
  EXPECT_THAT(words(" \n "), IsEmpty());
}

TEST(ShellWords, AreHeldTogetherByQuotes) {
  EXPECT_THAT(words(R"(a 'b c' "d 'e'" f"g h"i '')"),
              ElementsAre("a", "b c", "d 'e'", "fg hi", ""));
}

// A backslash is itself in single quotes, and in double quotes before what needs none.
TEST(ShellWords, HaveBackslashes) {
  EXPECT_THAT(words(R"(a\ b '\' "\"\n" \'c)"), ElementsAre("a b", "\\", "\"\\n", "'c"));
  EXPECT_THAT(words("--lr 1 \\\n  --bf16 \\\r\n--fp\\\n8"),
              ElementsAre("--lr", "1", "--bf16", "--fp8"));
}

TEST(ShellWords, AreNotExpandedAndLeaveOutComments) {
  EXPECT_THAT(words("$x *.c # rest\nb a#b '#'"), ElementsAre("$x", "*.c", "b", "a#b", "#"));
}

TEST(ShellWords, HoldArithmeticTogether) {
  EXPECT_THAT(words("A=$((B * (C + 1))) d"), ElementsAre("A=$((B * (C + 1)))", "d"));
  EXPECT_THAT(words("$((a b"), ElementsAre("$((a", "b"));
}

// A word is read back as it was, in quotes only where a shell would change it.
TEST(ShellWords, AreWrittenAsTheyAreRead) {
  EXPECT_EQ(shell_word("strategy.micro_batch=2"), "strategy.micro_batch=2");
  EXPECT_EQ(shell_word("Et*3|tL"), "'Et*3|tL'");
  for (const std::string& word : {std::string("it's 2 GB/s"), std::string(), std::string("[a, b]"),
                                  std::string("a\"b$c"), std::string("'")})
    EXPECT_THAT(words(shell_word(word)), ElementsAre(word)) << shell_word(word);
}

TEST(ShellWords, NeedTheirQuotesClosed) {
  EXPECT_THAT(words("a 'b"), ElementsAre(HasSubstr("the quote ' is not closed in: a 'b")));
}

}  // namespace
}  // namespace foreshard
