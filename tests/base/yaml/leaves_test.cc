#include "base/yaml/leaves.h"

#include "tests/test.h"

namespace foreshard::yaml {
namespace {

std::string flat(const std::string& text) {
  const auto found = leaves(text, "file");
  if (!found) return found.error().message;
  std::string lines;
  for (const Leaf& leaf : *found) {
    lines += leaf.path + (leaf.list ? " [" : " ");
    for (const std::string& word : leaf.words) lines += word + ";";
    lines += " " + leaf.place + "\n";
  }
  return lines;
}

TEST(Leaves, AreTheValuesWithTheirPathsAndPlaces) {
  EXPECT_EQ(flat("a: 1\nb:\n  c: [x, 2]\n  d: null\n  e: {}\nf:\n- {g: 1}\n- 'h'\n"),
            "a 1; file:1:4\n"
            "b.c [x;2; file:3:6\n"
            "b.d  file:4:6\n"
            "f.0.g 1; file:7:7\n"
            "f.1 h; file:8:3\n");
  EXPECT_EQ(flat("{\n\t\"a\": {\"b\": true}\n}"), "a.b true; file:2:13\n");
}

TEST(Leaves, RefuseWhatTheLoaderRefuses) {
  EXPECT_THAT(flat("a: 1\na: 2\n"), HasSubstr("file:2:1: error: "));
  EXPECT_THAT(flat("a: !!python/none x\n"), HasSubstr("error: "));
  EXPECT_THAT(flat("{a: "), HasSubstr("file:1:"));
  EXPECT_THAT(flat(""), HasSubstr("there is nothing in it"));
}

}  // namespace
}  // namespace foreshard::yaml
