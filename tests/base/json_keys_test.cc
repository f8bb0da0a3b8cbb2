#include "base/json_keys.h"

#include "tests/test.h"

namespace foreshard {
namespace {

TEST(JsonKeys, AreThoseOfTheFirstObjectAlone) {
  EXPECT_THAT(
      first_object_keys(R"({"a": {"b": 1}, "c": [{"d": "e"}], "f": "g, \"h\": "} {"i": 0})"),
      ElementsAre("a", "c", "f"));
  EXPECT_THAT(first_object_keys(" [ {\"a\":\"x\",\n\"b\":null}"), ElementsAre("a", "b"));
  EXPECT_THAT(first_object_keys("no object"), IsEmpty());
}

TEST(JsonKeys, OfATextThatIsCutOff) {
  EXPECT_THAT(first_object_keys(R"({"a": 1, "b": {"c)"), ElementsAre("a", "b"));
  EXPECT_THAT(first_object_keys(R"({"a": 1, "b": 2})", 8), ElementsAre("a"));
  EXPECT_THAT(first_object_keys("{\"a\\"), IsEmpty());
}

}  // namespace
}  // namespace foreshard
