#include "strategies/checkpoint/manifest.h"

#include "tests/test.h"

namespace foreshard::checkpoint::manifest_test {

Manifest small_manifest() {
  const Layout columns{.mesh = mesh_from({{"tp", 2}}), .attribute = {.dims = {{}, {0}}}};
  Layout uneven{.mesh = {.axes = {{"tp", 3}}, .ranks = {4, 0, 1}}, .attribute = {.dims = {{0}}}};
  uneven.attribute.sizes = {{3, 0, 2}};
  return {.format = FileFormat::kRaw,
          .origin = "\"quoted\" größe",
          .conversion = "",
          .files = {{0, "a", 12, std::string(64, 'a')},
                    {1, "b", 12, std::string(64, '0')},
                    {4, "c", 3, std::string(64, '7')}},
          .tensors = {{.name = "w", .type = ElementType::kBf16, .shape = {2, 4}, .layout = columns},
                      {.name = "v",
                       .type = ElementType::kF32,
                       .shape = {2, 4},
                       .unpadded = {2, 3},
                       .layout = columns},
                      {.name = "b", .type = ElementType::kI8, .shape = {5}, .layout = uneven}}};
}

TEST(Manifest, ReadsBackWhatItWrites) {
  const Manifest manifest = small_manifest();
  const std::string text = to_json(manifest);
  const auto read = value_of(manifest_from_json(text), text);
  EXPECT_EQ(read, manifest);
  EXPECT_EQ(to_json(read), text);
}

// The manifest above with `from` replaced by `to`, once.
std::string fault(const std::string& from, const std::string& to) {
  std::string text = to_json(small_manifest());
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return "'" + from + "' is not in " + text;
  return message_of(manifest_from_json(text.replace(at, from.size(), to)));
}

TEST(Manifest, NamesWhatIsWrong) {
  EXPECT_THAT(fault("\"schema\"", "schema"), HasSubstr("no JSON: line 1, column 2"));
  EXPECT_THAT(fault("checkpoint/1", "checkpoint/9"),
              HasSubstr("expected 'foreshard.checkpoint/1'"));
  EXPECT_THAT(fault("\"raw\"", "\"pickle\""), HasSubstr("format: 'pickle' is not a file format"));
  EXPECT_THAT(fault("\"format\"", "\"form\""), HasSubstr("unknown key 'form'; legal: schema"));
  EXPECT_THAT(fault("\"origin\"", "\"format\""), HasSubstr("key 'format' appears twice"));
  EXPECT_THAT(fault("12", "12e444"), HasSubstr("no JSON: number overflow"));
  EXPECT_THAT(fault("\"path\":\"b\"", "\"path\":\"../b\""),
              HasSubstr("not the name of a file inside"));
  EXPECT_THAT(fault("\"path\":\"b\"", "\"path\":\"a\""), HasSubstr("'a' appears twice"));
  EXPECT_THAT(fault("\"rank\":1", "\"rank\":0"),
              HasSubstr("files[1].rank: rank 0 does not ascend"));
  EXPECT_THAT(fault("aaaa", "AAAA"), HasSubstr("files[0].sha256: is not 64 digits"));
  EXPECT_THAT(fault("\"bytes\":3", "\"bytes\":-3"), HasSubstr("files[2].bytes: -3 is not in"));
  EXPECT_THAT(fault("[4,0,1]", "[4,0,2]"), HasSubstr("layouts[1].ranks: rank 2 has no file"));
  EXPECT_THAT(fault("[[],[\"tp\"]]", "[[],[\"pp\"]]"), HasSubstr("the mesh has no axis 'pp'"));
  EXPECT_THAT(fault("\"BF16\"", "\"BF17\""),
              HasSubstr("tensors[0].dtype: unknown dtype 'BF17' of tensor 'w'"));
  EXPECT_THAT(fault("\"layout\":1", "\"layout\":2"), HasSubstr("2 is not in [0, 1]"));
  EXPECT_THAT(fault("\"shape\":[5]", "\"shape\":[6]"), HasSubstr("tensor 'b': "));
  EXPECT_THAT(fault("\"shape\":[2,4]", "\"shape\":[2,3]"), HasSubstr("tensor 'w': "));
  EXPECT_THAT(fault("\"unpadded\":[2,3]", "\"unpadded\":[3,3]"), HasSubstr("more than the 2"));
  EXPECT_THAT(fault("\"name\":\"v\"", "\"name\":\"w\""), HasSubstr("tensor 'w' appears twice"));
}

// A line of a few bytes is a tensor with as many slices as the largest layout has ranks.
TEST(Manifest, BoundsTheSlicesOfAllTensors) {
  constexpr std::int32_t kRanks = 1 << 14;
  Manifest manifest{.format = FileFormat::kRaw};
  for (std::int32_t rank = 0; rank < kRanks; ++rank)
    manifest.files.push_back({rank, std::to_string(rank), 0, std::string(64, '0')});
  const Layout rows{.mesh = mesh_from({{"x", kRanks}}), .attribute = {.dims = {{0}}}};
  for (std::int64_t i = 0; i <= kMostSlices / kRanks; ++i)
    manifest.tensors.push_back({.name = std::to_string(i), .shape = {kRanks}, .layout = rows});
  EXPECT_THAT(message_of(manifest_from_json(to_json(manifest))),
              HasSubstr("tensors[2048]: more than 33554432 slices"));
}

}  // namespace foreshard::checkpoint::manifest_test
