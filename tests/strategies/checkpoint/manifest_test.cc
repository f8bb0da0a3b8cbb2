#include "strategies/checkpoint/manifest.h"

#include "base/limits.h"
#include "tests/golden/golden.h"

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
  expect_golden("manifest.json", text);  // which tests/errors/manifest.yaml changes
}

// A line of a few bytes is a tensor with as many slices as the largest layout has ranks.
TEST(Manifest, BoundsTheSlicesOfAllTensors) {
  constexpr std::int32_t kRanks = 1 << 14;
  Manifest manifest{.format = FileFormat::kRaw};
  for (std::int32_t rank = 0; rank < kRanks; ++rank)
    manifest.files.push_back({rank, std::to_string(rank), 0, std::string(64, '0')});
  const Layout rows{.mesh = mesh_from({{"x", kRanks}}), .attribute = {.dims = {{0}}}};
  for (std::int64_t i = 0; i <= limits::kSlices / kRanks; ++i)
    manifest.tensors.push_back({.name = std::to_string(i), .shape = {kRanks}, .layout = rows});
  EXPECT_THAT(message_of(manifest_from_json(to_json(manifest))),
              HasSubstr("tensors[2048]: more than 33554432 slices"));
}

}  // namespace foreshard::checkpoint::manifest_test
