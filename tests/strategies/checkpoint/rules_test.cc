#include "strategies/checkpoint/rules.h"

#include "tests/test.h"

namespace foreshard::checkpoint {
namespace {

TEST(LayoutRules, MatchNames) {
  EXPECT_TRUE(matches("layers.{0-11}.*.weight", "layers.11.qkv.weight"));
  EXPECT_FALSE(matches("layers.{0-11}.*.weight", "layers.12.qkv.weight"));
  EXPECT_FALSE(matches("layers.{0-11}.*.weight", "layers.x.qkv.weight"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*norm*", "final_norm.weight"));
  EXPECT_FALSE(matches("norm", "norms"));
  EXPECT_TRUE(matches("odd{name", "odd{name"));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_FALSE(matches("a", ""));
  EXPECT_TRUE(matches("a**b*", "ab"));
  EXPECT_TRUE(matches("*{0-3}", "layers.13"));  // * may take a part of a number
  EXPECT_TRUE(matches("*.{2-3}.*.w", "a.1.b.2.c.3.w"));
  EXPECT_FALSE(matches("*.{2-3}.w", "a.2.w.4.w"));
}

TEST(LayoutRules, ManyStarsTakeNoLongTime) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  const std::string name(10'000, 'a');
  EXPECT_TRUE(matches(pattern, name));
  EXPECT_FALSE(matches(pattern + "*b", name));
}

Source source() {
  Source source;
  for (const auto& [name, shape] : std::vector<std::pair<std::string, Shape>>{
           {"layers.0.w", {8, 4}}, {"layers.1.w", {8, 4}}, {"norm", {4}}})
    source.tensors.push_back(
        {.entry = {.name = name, .type = ElementType::kBf16, .shape = shape}, .locations = {}});
  return source;
}

std::string outcome(const std::string& text) {
  yaml::Loader loader;
  const auto rules = loader.read_text<LayoutRules>(text, "rules.yaml");
  if (!rules) return rules.error().message;
  const auto target = target_by_rules(source(), *rules, loader);
  if (!target) return target.error().message;
  std::string lines;
  for (const TensorEntry& entry : target->tensors)
    lines += entry.name + ": " + describe(entry.layout) + "\n";
  for (const std::string& name : target->left_out) lines += name + " left out\n";
  return lines;
}

TEST(LayoutRules, GiveEveryTensorItsLayout) {
  EXPECT_EQ(outcome(R"(
tensors:
  - {match: "layers.{0-0}.*", layout: "tp=2 @0-1 [tp, -]"}
  - {match: "layers.*", layout: "tp=2 @2-3 [tp, -]"}
  - {match: "*", leave_out: true}
)"),
            "layers.0.w: tp=2 @0,1 [tp, -]\nlayers.1.w: tp=2 @2,3 [tp, -]\nnorm left out\n");
}

TEST(LayoutRules, NameWhatIsWrong) {
  EXPECT_THAT(outcome("tensors: [{match: \"layers.*\", layout: \"tp=2 [tp, -]\"}]"),
              HasSubstr("no rule matches tensor 'norm'"));
  EXPECT_THAT(outcome("tensors: [{match: \"*\"}]"), HasSubstr("either 'layout' or 'leave_out"));
  EXPECT_THAT(outcome("tensors: [{match: \"*\", layout: \"tp=3 [tp, -]\"}]"),
              HasSubstr("does not fit tensor 'layers.0.w'"));
  EXPECT_THAT(outcome("tensors: [{match: \"layer.*\", leave_out: true},\n"
                      "          {match: \"*\", leave_out: true}]"),
              HasSubstr("'layer.*' matches none of the 3 tensors, the first of which is "
                        "'layers.0.w'"));
  EXPECT_THAT(message_of(target_by_layout(source(), "tp=2 [tp, -]")),
              HasSubstr("--to does not fit tensor 'norm'"));
}

}  // namespace
}  // namespace foreshard::checkpoint
