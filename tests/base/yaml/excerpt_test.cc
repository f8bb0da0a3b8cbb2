// Lines are clipped: a message never carries a source line of 20,000 characters.

#include "tests/base/yaml/example.h"
#include "tests/test.h"

namespace foreshard {
namespace {

using example::fault;

TEST(YamlExcerpt, ClipsLongLinesAroundTheCaret) {
  const std::string filler(20'000, 'a');
  const std::vector<std::string> texts{
      "name: x\ntags: [" + filler + ", b]\nnodes: y", "name: x\nbad" + filler + ": 1",
      "{name: x, tags: [" + filler + "], nodes: oops, tier: gold, " + filler + ": 1}"};
  for (const std::string& text : texts) {
    std::istringstream lines(fault(text));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 130u) << line;
  }
}

TEST(YamlExcerpt, TheCaretStandsBelowTheFault) {
  const std::string filler(500, 'a');
  std::istringstream lines(
      fault("{name: x, tags: [" + filler + "], nodes: oops, tier: " + filler + "}"));
  std::string place, source, caret;
  std::getline(lines, place);
  std::getline(lines, source);
  std::getline(lines, caret);
  EXPECT_EQ(source.find("oops"), caret.find("^^^^")) << source << "\n" << caret;
  EXPECT_THAT(source, HasSubstr("..."));
}

// Numbers of lines take four columns, and more from 10,000 on.
TEST(YamlExcerpt, TheCaretStandsBelowTheFaultInALongFile) {
  for (const std::size_t lines_before : {9'998, 9'999, 99'999}) {
    std::istringstream lines(fault("name: x" + std::string(lines_before, '\n') + "nodes: oops"));
    std::string place, source, caret;
    std::getline(lines, place);
    std::getline(lines, source);
    std::getline(lines, caret);
    EXPECT_EQ(source.find("oops"), caret.find("^^^^")) << source << "\n" << caret;
    EXPECT_EQ(source.find('|'), caret.find('|')) << source << "\n" << caret;
  }
}

TEST(YamlExcerpt, CapsTheNumberOfErrors) {
  std::string text = "name: x\n";
  for (int i = 0; i < 1000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(fault(text), HasSubstr("... and 980 more errors"));
}

}  // namespace
}  // namespace foreshard
