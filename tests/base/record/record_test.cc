#include "base/record/record.h"

#include <gmock/gmock.h>

#include "base/record/csv.h"
#include "base/units.h"

namespace foreshard::record_test {
namespace {

using record::Json;
using record::Record;

enum class Colour { kRed, kBlue };
const yaml::Names<Colour>& yaml_names(const Colour*) {
  static const yaml::Names<Colour> names{{"red", Colour::kRed, ""}, {"blue", Colour::kBlue, ""}};
  return names;
}

struct Inner {
  Bytes size;
  std::optional<Seconds> time;

  bool operator==(const Inner&) const = default;
};
const Record<Inner>& record_of(const Inner*) {
  static const auto record =
      Record<Inner>("inner", "A part.").field("bytes", &Inner::size).field("time_s", &Inner::time);
  return record;
}

struct Outer {
  bool is_on = false;
  std::int32_t count = 0;
  Colour colour = Colour::kRed;
  std::vector<Inner> parts;
  std::map<std::string, double> shares;
  std::vector<std::pair<std::string, std::string>> pairs;
  std::optional<std::string> note;
  Inner one;

  double twice() const { return 2.0 * count; }
  bool operator==(const Outer&) const = default;
};
const Record<Outer>& record_of(const Outer*) {
  static const auto record =
      Record<Outer>::result("test.outer/1", "The whole.")
          .field("on", &Outer::is_on)
          .field("count", &Outer::count, "How many.")
          .field("twice", &Outer::twice)
          .field("colour", &Outer::colour)
          .field("parts", &Outer::parts, "In order.")
          .field("shares", &Outer::shares)
          .field("pairs", &Outer::pairs)
          .sometimes("note", &Outer::note)
          .group("group", Record<Outer>().field("size", record::at<&Outer::one, &Inner::size>))
          .field("one", &Outer::one);
  return record;
}

Outer example() {
  return {.is_on = true,
          .count = 3,
          .colour = Colour::kBlue,
          .parts = {{.size = 7_B, .time = 2_s}, {.size = 8_B, .time = {}}},
          .shares = {{"b", 0.5}, {"a", 0.25}},
          .pairs = {{"z", "1"}, {"a", "2"}},
          .note = "words",
          .one = {.size = 9_B, .time = {}}};
}

TEST(Record, WritesFieldsInTheirOrder) {
  EXPECT_EQ(record::write(example()).dump(),
            R"({"schema":"test.outer/1","on":true,"count":3,"twice":6.0,"colour":"blue",)"
            R"("parts":[{"bytes":7,"time_s":2.0},{"bytes":8,"time_s":null}],)"
            R"("shares":{"a":0.25,"b":0.5},"pairs":{"z":"1","a":"2"},"note":"words",)"
            R"("group":{"size":9},"one":{"bytes":9,"time_s":null}})");
  Outer without = example();
  without.note.reset();
  EXPECT_FALSE(record::write(without).contains("note"));
}

TEST(Record, ReadsWhatItWrites) {
  const auto read = record::read<Outer>(Json::parse(record::write(example()).dump()));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, example());
}

TEST(Record, NamesThePlaceThatCannotBeRead) {
  const auto fault = [](std::string_view pointer, Json value) {
    Json json = record::write(example());
    json[Json::json_pointer(std::string(pointer))] = std::move(value);
    const auto read = record::read<Outer>(json);
    return read.has_value() ? std::string() : read.error().message;
  };
  EXPECT_EQ(fault("/on", 1), "/on: neither true nor false");
  EXPECT_EQ(fault("/count", 2.5), "/count: no whole number, or one out of range");
  EXPECT_EQ(fault("/count", 1LL << 40), "/count: no whole number, or one out of range");
  EXPECT_EQ(fault("/colour", "green"), "/colour: none of 'red' or 'blue'");
  EXPECT_EQ(fault("/parts/1/bytes", "8"), "/parts/1/bytes: no whole number, or one out of range");
  EXPECT_EQ(fault("/parts/0/time_s", "2"), "/parts/0/time_s: no number");
  EXPECT_EQ(fault("/one/bytes", ~std::uint64_t{0}),
            "/one/bytes: no whole number, or one out of range");
  EXPECT_EQ(fault("/parts", 1), "/parts: no list");
  EXPECT_EQ(fault("/shares/a", "x"), "/shares/a: no number");
  EXPECT_EQ(fault("/pairs", Json::array()), "/pairs: no object");
  EXPECT_EQ(fault("/note", 1), "/note: no text");
  EXPECT_EQ(fault("/one", nullptr), "/one: no object");
  EXPECT_EQ(fault("/twice", "computed, so skipped"), "");
  Json json = record::write(example());
  json.erase("count");
  EXPECT_EQ(record::read<Outer>(json).error().message, "/count: missing");
  const Json within{{"outer", json}};
  EXPECT_EQ(record::read_at<Outer>(within, "outer").error().message, "/outer/count: missing");
  EXPECT_EQ(record::read_at<Outer>(within, "other").error().message, "/other: missing");
}

TEST(Record, DescribesWhatItWrites) {
  const Json schema = record::schema<Outer>();
  EXPECT_EQ(schema["title"], "test.outer/1");
  EXPECT_EQ(schema["properties"]["schema"], Json({{"const", "test.outer/1"}}));
  EXPECT_EQ(schema["properties"]["count"],
            Json({{"type", "integer"}, {"description", "How many."}}));
  EXPECT_EQ(schema["properties"]["colour"], record::one_of({"red", "blue"}));
  EXPECT_EQ(schema["properties"]["parts"]["items"], Json({{"$ref", "#/definitions/inner"}}));
  EXPECT_EQ(schema["properties"]["shares"]["additionalProperties"], Json({{"type", "number"}}));
  EXPECT_EQ(schema["properties"]["group"]["properties"]["size"], Json({{"type", "integer"}}));
  EXPECT_EQ(schema["definitions"]["inner"]["properties"]["time_s"].dump(),
            R"({"type":["number","null"]})");
  const auto& required = schema["required"];
  EXPECT_NE(std::ranges::find(required, "on"), required.end());
  EXPECT_EQ(std::ranges::find(required, "note"), required.end());
}

TEST(Csv, TakesItsCellsFromPlaces) {
  const std::vector<Json> rows{
      {{"name", "a,b"}, {"step", {{"time_s", 0.0}, {"of", {"x", "y"}}}}, {"fits", true}},
      {{"name", nullptr}, {"step", nullptr}, {"fits", false}}};
  EXPECT_EQ(record::csv({{"name", ""},
                         {"time", "step/time_s"},
                         {"of", "step/of", " "},
                         {"fits", ""},
                         {"none", "step/none"}},
                        rows),
            "name,time,of,fits,none\n\"a,b\",0,x y,true,\n,,,false,\n");
}

}  // namespace
}  // namespace foreshard::record_test
