#include "base/printable.h"

#include "tests/test.h"

namespace foreshard {
namespace {

TEST(Printable, LeavesTextsAsTheyAre) {
  for (const char* text :
       {"", "plain", "two\nlines\n", "\ttab \\ 'x1b'", "µs, Größe, 中文, 🙂"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("lay\x1b[31mers"), "lay\\x1b[31mers");
  EXPECT_EQ(printable("a\rb\bc\x7f"), "a\\x0db\\x08c\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m")
      << "a control character of one byte more";
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "live"),
            "\\xe2\\x80\\xaelive")
      << "from right to left";
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(printable("\xe2\x28\xa1"), "\\xe2(\\xa1");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80") << "longer than it need be";
}

TEST(Printable, KeepsColoursWhereTheyAreWanted) {
  EXPECT_EQ(printable("\x1b[1;31mred\x1b[0m", 100, true), "\x1b[1;31mred\x1b[0m");
  EXPECT_EQ(printable("\x1b[2J\x1b[1", 100, true), "\\x1b[2J\\x1b[1") << "no colour";
}

TEST(Printable, ShortensEachLine) {
  EXPECT_EQ(printable("abcdef\nab\nabcd", 3), "abc... (3 more bytes)\nab\nabc... (1 more bytes)");
  EXPECT_LT(printable(std::string(100'000, 'x')).size(), kLongestLine + 100);
}

}  // namespace
}  // namespace foreshard
