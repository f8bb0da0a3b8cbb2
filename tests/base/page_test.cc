#include "base/page.h"

#include "tests/test.h"

namespace foreshard {
namespace {

std::string shown(const TextTable& table, std::size_t width) {
  Page page({.width = width});
  page.table(table);
  return std::move(page).take();
}

// By hand: "é" is two bytes and one column, "数" three bytes and two, a combining acute none.
TEST(Page, CountsTheColumnsOfATerminal) {
  EXPECT_EQ(columns(""), 0U);
  EXPECT_EQ(columns("step"), 4U);
  EXPECT_EQ(columns("café"), 4U);
  EXPECT_EQ(columns("cafe\u0301"), 4U);
  EXPECT_EQ(columns("数"), 2U);
  EXPECT_EQ(columns("█▏✓"), 3U);
  EXPECT_EQ(columns("\x1b[31mbad\x1b[0m"), 3U);
  EXPECT_EQ(columns("\xe6\x95"), 1U) << "cut in the middle of a character";
}

TEST(Page, HasItsSignsInAscii) {
  EXPECT_EQ(in_ascii("╭─╮│█▏✓"), "+-+|#|y");
  EXPECT_EQ(in_ascii("é stays"), "é stays");
}

TEST(Page, BreaksTextAtSpacesAndLongWordsBehindSigns) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped("a step takes long", 7), (Lines{"a step", "takes", "long"}));
  EXPECT_EQ(wrapped("", 7), (Lines{""}));
  EXPECT_EQ(wrapped("  two", 7), (Lines{"  two"}));
  EXPECT_EQ(wrapped("node12/gpu0", 8), (Lines{"node12/", "gpu0"}));
  EXPECT_EQ(wrapped("abcdefghij", 4), (Lines{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrapped(std::string(3'000'000, 'a'), 10).size(), 300'000U);  // linear, or hours
}

TEST(Page, WrapsLinesBelowTheirOwnIndent) {
  Page page({.width = 20});
  page.line("  a sentence that is\nlonger than a line of it");
  EXPECT_EQ(std::move(page).take(), "  a sentence that\n    is\nlonger than a line\nof it\n");
  Page copied({.width = 5});
  copied.verbatim("a command to copy");
  EXPECT_EQ(std::move(copied).take(), "a command to copy\n");
}

TEST(TextTable, AlignsNumbersToTheRightAndWordsToTheLeft) {
  TextTable table({"<step", ">times", ">each"});
  table.row("all_gather", 7, "1.5 ms");
  table.row("数", 12);
  table.note("-> x");
  EXPECT_EQ(shown(table, 80),
            "  step        times    each\n"
            "  all_gather      7  1.5 ms\n"
            "  数             12\n"
            "      -> x\n");
}

TEST(TextTable, WithoutHeadsOrRowsPrintsNoneOfThem) {
  TextTable table({">", "<"});
  EXPECT_EQ(shown(table, 80), "");
  table.row("1,234", "tried");
  EXPECT_EQ(shown(table, 80), "  1,234  tried\n");
}

TEST(TextTable, StandsApartFromLinesAbove) {
  TextTable table({"<a"});
  table.row("b");
  Page page(Paper{});
  page.line("text");
  page.table(table);
  page.heading("Heading");
  page.table(table);
  EXPECT_EQ(std::move(page).take(), "text\n\n  a\n  b\n\nHeading\n  a\n  b\n");
}

// By hand: 2 + 5 + 2 columns leave 21 of 30; the words would take 29.
TEST(TextTable, WrapsWordsThatDoNotFit) {
  TextTable table({">step", "<strategy"});
  table.row("1.5 s", "tensor 8, pipeline 4, data 16\nDOES NOT FIT");
  EXPECT_EQ(shown(table, 30),
            "   step  strategy\n"
            "  1.5 s  tensor 8, pipeline 4,\n"
            "         data 16\n"
            "         DOES NOT FIT\n");
}

// By hand: 2 + 1 + 7 + 7 columns and two gaps are 19 of 20 if a gap is one column, 21 if it is two.
TEST(TextTable, PutsColumnsThatDoNotFitBelowTheOthers) {
  TextTable table({"<a", ">first", ">second", ">third"});
  table.row("x", "111,111", "222,222", "333,333");
  table.row("y", "1");
  EXPECT_EQ(shown(table, 20),
            "  a   first  second\n"
            "        third\n"
            "  x 111,111 222,222\n"
            "      333,333\n"
            "  y       1\n");
}

TEST(TextTable, SaysHowManyRowsItLeavesOut) {
  TextTable table({"<"});
  for (const char* name : {"a", "b", "c"}) table.row(name);
  Page page(Paper{});
  page.table(table, 1, "(--top)");
  page.table(table, 3, "(--top)");
  EXPECT_EQ(std::move(page).take(), "  a\n  ... and 2 more (--top)\n  a\n  b\n  c\n");
}

// Property: whatever the width, no line is wider, and what the cells say is all there.
TEST(TextTable, KeepsWithinThePageAndLosesNothing) {
  TextTable table({"<name", ">8 of 10 within", ">peak", "<link", "<how"});
  table.row("layer.forward", "18.9 d to 23.4 d", "61.4 GB",
            "node0/gpu0 -> node0/nvswitch3 (nvlink)",
            "the busiest rank gets more than its share of the tokens");
  table.note("a note of many words that is wider than the page");
  const auto letters = [](std::string text) {
    std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
    std::ranges::sort(text);
    return text;
  };
  const std::string whole = letters(shown(table, 1000));
  for (std::size_t width = 26; width < 200; ++width) {
    const std::string text = shown(table, width);
    EXPECT_EQ(letters(text), whole) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), width) << text;
  }
}

TEST(Page, ColoursOnlyWhereItIsAskedTo) {
  Page plain(Paper{});
  EXPECT_EQ(plain.toned("x", Tone::kBad), "x");
  Page coloured({.colour = true});
  EXPECT_EQ(coloured.toned("x", Tone::kBad), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(coloured.toned("x", Tone::kPlain), "x");
}

}  // namespace
}  // namespace foreshard
