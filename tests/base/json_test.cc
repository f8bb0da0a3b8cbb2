#include "base/json.h"

#include <nlohmann/json.hpp>

#include "tests/test.h"

namespace foreshard {
namespace {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

std::string fault_of_json(const std::string& text) {
  const std::string why = message_of(parsed_json(text));
  EXPECT_EQ(message_of(parsed_json<Ordered>(text)), why);
  return why;
}

std::string repeated(std::size_t count, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

TEST(ParsedJson, IsWhatTheLibraryParses) {
  for (const char* text :
       {"null", "true", "-1", "18446744073709551615", "1.5e300", R"("a\u0041")", "[]", "{}",
        R"([1, [2, {"a": []}], {"b": {"c": null}}])", " {\"z\": 1, \"a\": 2, \"\": [{}]} "}) {
    EXPECT_EQ(value_of(parsed_json(text)), Json::parse(text)) << text;
    EXPECT_EQ(value_of(parsed_json<Ordered>(text)).dump(), Ordered::parse(text).dump()) << text;
  }
}

TEST(ParsedJson, NamesTheFault) {
  EXPECT_THAT(fault_of_json("{x"),
              HasSubstr("no JSON: line 1, column 2: invalid literal; last read: '{x'"));
  EXPECT_THAT(fault_of_json(""), HasSubstr("no JSON: line 1, column 1: unexpected end of input"));
  EXPECT_THAT(fault_of_json("{} {}"), HasSubstr("no JSON: line 1, column 4"));
  EXPECT_THAT(fault_of_json("[1e999]"), HasSubstr("no JSON: number overflow parsing '1e999'"));
  EXPECT_THAT(fault_of_json("\"\xff\""), HasSubstr("ill-formed UTF-8"));
  EXPECT_EQ(fault_of_json(R"({"a": 1, "b": {"a": 1}, "a": 2})"), "a: key 'a' appears twice");
  EXPECT_EQ(fault_of_json(R"({"b": [{"a": 1, "a": 2}]})"), "b: key 'a' appears twice");
}

// 64 containers in containers are read, 65 are not: a library that copies recursively gets no
// deeper ones.
TEST(ParsedJson, IsNoDeeperThanTheLimit) {
  const auto nested = [](std::size_t depth) { return repeated(depth, "[") + repeated(depth, "]"); };
  EXPECT_TRUE(parsed_json(nested(64)));
  EXPECT_EQ(fault_of_json(nested(65)), "nested deeper than 64 levels");
  EXPECT_EQ(fault_of_json("{\"tid\": " + nested(100000) + "}"),
            "tid: nested deeper than 64 levels");
  EXPECT_EQ(fault_of_json(repeated(100000, "{\"a\":")), "a: nested deeper than 64 levels");
}

// 14 million empty arrays take 1 GiB; their text, 41 MB.
TEST(ParsedJson, HoldsNoMoreValuesThanTheLimit) {
  EXPECT_THAT(message_of(parsed_json("{\"x\":[[]" + repeated(15'000'000, ",[]") + "]}")),
              HasSubstr("x: more values than 1.00 GiB of memory hold; FORESHARD_LIMITS=2"));
}

TEST(ParsedJson, IsLinearInTheKeysOfAnObject) {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  EXPECT_EQ(value_of(parsed_json<Ordered>(text + "}")).size(), 300'000U);
}

TEST(ParsedJson, AsksWhatToKeep) {
  std::vector<std::string> asked;
  const JsonFilter<Json> keep = [&](int depth, std::string_view key, const Json& value) {
    asked.push_back(std::to_string(depth) + std::string(key) + value.dump());
    return depth != 2;
  };
  EXPECT_EQ(value_of(parsed_json<Json>(R"({"a": [1, {"x": 2}, []], "b": {"y": {}}})", keep)),
            Json::parse(R"({"a": [1], "b": {}})"));
  EXPECT_THAT(asked, ElementsAre("2a{\"x\":2}", "2a[]", "1a[1]", "2b{}", "1b{}"));
  asked.clear();
  EXPECT_EQ(value_of(parsed_json<Json>("[{}, [3]]", keep)), Json::parse("[{}, [3]]"));
  EXPECT_THAT(asked, ElementsAre("1{}", "1[3]"));
}

// What is not kept does not count.
TEST(ParsedJson, DropsMoreValuesThanItHolds) {
  const auto drop = [](int, std::string_view, const Json&) { return false; };
  EXPECT_TRUE(parsed_json<Json>("[[]" + repeated(15'000'000, ",[]") + "]", drop));
}

TEST(SchemaIn, IsTheTextAtThatKeyOrNone) {
  EXPECT_EQ(schema_in(R"({"schema": "a/1"})"), "a/1");
  for (const char* text : {"", "{", "[]", "{}", R"({"schema": 1})", R"(["schema"])"})
    EXPECT_EQ(schema_in(text), "") << text;
}

TEST(JsonWords, AreOurs) {
  const auto words = [](const auto& use) {
    try {
      use(Json::parse(R"({"a": null})"));
    } catch (const Json::exception& exception) {
      return json_words(exception.what());
    }
    return std::string("no exception");
  };
  EXPECT_EQ(words([](const Json& json) { (void)json["a"].get<std::string>(); }),
            "a value is null instead of string");
  EXPECT_EQ(words([](const Json& json) { (void)json.at("b"); }), "key 'b' is missing");
  EXPECT_THAT(words([](const Json& json) { (void)json["a"].at(0); }), Not(HasSubstr("json.")));
}

TEST(FirstObjectKeys, AreThoseOfTheFirstObjectAlone) {
  EXPECT_THAT(
      first_object_keys(R"({"a": {"b": 1}, "c": [{"d": "e"}], "f": "g, \"h\": "} {"i": 0})"),
      ElementsAre("a", "c", "f"));
  EXPECT_THAT(first_object_keys(" [ {\"a\":\"x\",\n\"b\":null}"), ElementsAre("a", "b"));
  EXPECT_THAT(first_object_keys("no object"), IsEmpty());
}

TEST(FirstObjectKeys, OfATextThatIsCutOff) {
  EXPECT_THAT(first_object_keys(R"({"a": 1, "b": {"c)"), ElementsAre("a", "b"));
  EXPECT_THAT(first_object_keys(R"({"a": 1, "b": 2})", 8), ElementsAre("a"));
  EXPECT_THAT(first_object_keys("{\"a\\"), IsEmpty());
}

}  // namespace
}  // namespace foreshard
