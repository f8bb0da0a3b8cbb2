// Values of any shape, kept as they are written and read again by another loader.
#include "base/yaml/written.h"

#include "base/yaml/describe.h"
#include "base/yaml/quoted.h"
#include "tests/test.h"

namespace foreshard::written_test {

struct Kept {
  std::map<std::string, yaml::Written> values;
};
const yaml::Table<Kept>& yaml_table(const Kept*) {
  static const auto table =
      yaml::Table<Kept>("kept", "Values.").required("values", &Kept::values, "Any.");
  return table;
}

Kept kept(const std::string& text) {
  return value_of(yaml::Loader().read_text<Kept>(text, "k.yaml"));
}

TEST(YamlComment, IsOneLineWhateverItsText) {
  EXPECT_EQ(yaml::comment("a: b"), "# a: b\n");
  EXPECT_EQ(yaml::comment("a\nmodel: x\x7f\x1b[31m"), "# a\\nmodel: x\\x7f\\x1b[31m\n");
}

TEST(YamlWritten, KeepsEveryShapeOnOneLine) {
  const Kept read = kept(
      "values:\n"
      "  number: 4\n"
      "  rate: 400 Gbit/s\n"
      "  text: \"4\"\n"
      "  comma: a, b\n"
      "  hash: \"x # y\"\n"
      "  list:\n"
      "    - 1\n"
      "    - {b: [x, null]}\n"
      "  mapping:\n"
      "    \"a key: odd\": true\n"
      "    lines: |\n"
      "      one\n"
      "      two\n");
  EXPECT_EQ(read.values.at("number").text, "4");
  EXPECT_EQ(read.values.at("rate").text, "400 Gbit/s");
  EXPECT_EQ(read.values.at("text").text, "\"4\"");
  EXPECT_EQ(read.values.at("comma").text, "\"a, b\"");
  EXPECT_EQ(read.values.at("hash").text, "\"x # y\"");
  EXPECT_EQ(read.values.at("list").text, "[1, {b: [x, null]}]");
  EXPECT_EQ(read.values.at("mapping").text, "{\"a key: odd\": true, lines: \"one\\ntwo\\n\"}");
  // Written out and read again, it is the same.
  EXPECT_EQ(kept(yaml::echo(read)).values, read.values);
}

}  // namespace foreshard::written_test
