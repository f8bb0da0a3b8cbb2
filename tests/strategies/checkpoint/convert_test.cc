#include "strategies/checkpoint/convert.h"

#include <rapidcheck.h>

#include "base/digest/sha256.h"
#include "tests/base/temporary_folder.h"
#include "tests/strategies/checkpoint/folders.h"
#include "tests/test.h"

namespace foreshard::checkpoint {
namespace {

namespace fs = std::filesystem;

// By hand: two layers with a 2 x 4 matrix of bytes each, split by column over two ranks,
//
//     a = 0 1 2 3    rank 0: 0 1 4 5    b = 8 9 10 11      rank 0: 8 9 12 13
//         4 5 6 7    rank 1: 2 3 6 7        12 13 14 15    rank 1: 10 11 14 15
//
// become two stages: rank 0 has a, rank 1 has b, whole.
TEST(Convert, MovesTwoColumnsToTwoStages) {
  const TemporaryFolder folder;
  const Layout columns = layout_of({{"tp", 2}}, {{}, {0}});
  Manifest manifest{.format = FileFormat::kRaw,
                    .tensors = {tensor("a", ElementType::kI8, {2, 4}, columns),
                                tensor("b", ElementType::kI8, {2, 4}, columns)}};
  const std::string files[2] = {{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}};
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    const std::string name = "shard" + std::to_string(rank);
    folder.write("from/" + name, files[rank]);
    manifest.files.push_back({rank, name, 8, sha256(files[rank])});
  }
  folder.write("from/" + std::string(kManifestName), to_json(manifest));

  const Target target{
      .format = FileFormat::kRaw,
      .tensors = {tensor("a", ElementType::kI8, {2, 4}, layout_of({{"pp", 1}}, {{}, {}}, 0)),
                  tensor("b", ElementType::kI8, {2, 4}, layout_of({{"pp", 1}}, {{}, {}}, 1))}};
  ASSERT_EQ(converted(folder.path() / "from", target, folder.path() / "to"), "done");
  EXPECT_EQ(bytes_of_file(folder.path() / "to/rank-00000.bin"),
            (std::string{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(bytes_of_file(folder.path() / "to/rank-00001.bin"),
            (std::string{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_FALSE(fs::exists(folder.path() / "to.partial"));
  EXPECT_FALSE(fs::exists(folder.path() / "to" / kJournalName));
}

// Two layers split 8 ways: a column-split, a row-split and a replicated tensor in each.
std::vector<TensorEntry> tensor_parallel(std::int64_t ways, std::int64_t stages) {
  std::vector<TensorEntry> tensors;
  for (std::int32_t layer = 0; layer < 2; ++layer) {
    const auto stage = static_cast<std::int32_t>(layer * stages / 2);
    const auto first = static_cast<std::int32_t>(stage * ways);
    const std::string name = "layers." + std::to_string(layer) + ".";
    const std::vector<MeshAxis> mesh{{"tp", ways}};
    tensors.push_back(
        tensor(name + "qkv", ElementType::kBf16, {24, 48}, layout_of(mesh, {{}, {0}}, first)));
    tensors.push_back(
        tensor(name + "out", ElementType::kF32, {16, 24}, layout_of(mesh, {{0}, {}}, first)));
    tensors.push_back(tensor(name + "norm", ElementType::kI8, {24}, layout_of(mesh, {{}}, first)));
  }
  return tensors;
}

TEST(Convert, MovesTensorParallel8ToTensorParallel4Pipeline2) {
  const TemporaryFolder folder;
  const fs::path from = folder.path() / "from";
  ASSERT_TRUE(write_synthetic(from, FileFormat::kSafetensors, tensor_parallel(8, 1), 7).ok());
  ASSERT_EQ(contents_of(from, 7), "right");
  EXPECT_THAT(contents_of(from, 8), HasSubstr("of tensor 'layers.0.qkv' is wrong"));
  const Target target{.tensors = tensor_parallel(4, 2)};
  ASSERT_EQ(converted(from, target, folder.path() / "to"), "done");
  EXPECT_EQ(contents_of(folder.path() / "to", 7), "right");
  EXPECT_EQ(shards_in(folder.path() / "to").size(), 8U);
  EXPECT_EQ(converted(from, target, folder.path() / "to"), "was there");
}

TEST(Convert, NamesADamagedFileOfACompleteTarget) {
  const TemporaryFolder folder;
  const fs::path from = folder.path() / "from";
  const fs::path to = folder.path() / "to";
  ASSERT_TRUE(write_synthetic(from, FileFormat::kSafetensors, tensor_parallel(8, 1), 7).ok());
  const Target target{.tensors = tensor_parallel(4, 2)};
  ASSERT_EQ(converted(from, target, to), "done");
  {
    std::fstream file(to / "rank-00002.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('?');
  }
  EXPECT_THAT(converted(from, target, to), AllOf(HasSubstr("rank-00002.safetensors: is damaged"),
                                                 HasSubstr("--force starts again")));
  EXPECT_EQ(converted(from, target, to, {.replace = true}), "done");
  EXPECT_EQ(contents_of(to, 7), "right");
}

TEST(Convert, ReadsHuggingFaceDirectories) {
  const TemporaryFolder folder;
  const fs::path made = folder.path() / "made";
  std::vector<TensorEntry> tensors;
  tensors.reserve(3);
  for (std::int32_t i = 0; i < 3; ++i)
    tensors.push_back(tensor("t" + std::to_string(i), ElementType::kF16, {6, 4},
                             layout_of({{"one", 1}}, {{}, {}}, i / 2)));
  ASSERT_TRUE(write_synthetic(made, FileFormat::kSafetensors, tensors, 3).ok());
  const fs::path from = folder.path() / "from";
  fs::create_directory(from);
  fs::copy(made / "rank-00000.safetensors", from / "model-00001-of-00002.safetensors");
  fs::copy(made / "rank-00001.safetensors", from / "model-00002-of-00002.safetensors");
  const std::string index = R"({"metadata": {"total_size": 144}, "weight_map": {
      "t0": "model-00001-of-00002.safetensors", "t1": "model-00001-of-00002.safetensors",
      "t2": "model-00002-of-00002.safetensors"}})";
  folder.write("from/model.safetensors.index.json", index);

  Target target{.tensors = tensors};
  for (TensorEntry& entry : target.tensors) entry.layout = layout_of({{"tp", 3}}, {{0}, {}});
  ASSERT_EQ(converted(from, target, folder.path() / "to"), "done");
  EXPECT_EQ(contents_of(folder.path() / "to", 3), "right");
  EXPECT_FALSE(fs::exists(folder.path() / "to/model.safetensors.index.json"));

  // Whole tensors, the first two on rank 0 and its replica: another tool finds them by the index.
  Target whole{.origin = "Hugging Face somewhere", .tensors = tensors};
  for (TensorEntry& entry : whole.tensors)
    entry.layout = entry.name == "t2" ? layout_of({{"one", 1}}, {{}, {}}, 2)
                                      : layout_of({{"data", 2}}, {{}, {}});
  const fs::path indexed = folder.path() / "indexed";
  ASSERT_EQ(converted(from, whole, indexed), "done");
  EXPECT_EQ(bytes_of_file(indexed / "model.safetensors.index.json"), R"({
  "metadata": {
    "total_size": 144
  },
  "weight_map": {
    "t0": "rank-00000.safetensors",
    "t1": "rank-00000.safetensors",
    "t2": "rank-00002.safetensors"
  }
}
)");
  whole.tensors[0].layout = layout_of({{"data", 2}}, {{0}, {}});
  EXPECT_EQ(converted(from, whole, indexed, {.replace = true}), "done");
  EXPECT_FALSE(fs::exists(indexed / "model.safetensors.index.json"));

  fs::remove(from / "model-00002-of-00002.safetensors");
  EXPECT_THAT(converted(from, target, folder.path() / "to2"),
              HasSubstr("model-00002-of-00002.safetensors: is missing"));
  folder.write("from/model.safetensors.index.json",
               R"({"weight_map": {"t0": "model-00001-of-00002.safetensors"}})");
  EXPECT_THAT(converted(from, target, folder.path() / "to2"),
              HasSubstr("has tensor 't1', which the index does not place there"));
  EXPECT_FALSE(fs::exists(folder.path() / "to2.partial"));
}

// Padding: 5 rows of 8 are values. With 6 rows (3 ways) the same 5 and one row of zeros.
TEST(Convert, DropsAndMakesPadding) {
  const TemporaryFolder folder;
  TensorEntry vocabulary =
      tensor("embedding", ElementType::kBf16, {8, 3}, layout_of({{"tp", 4}}, {{0}, {}}));
  vocabulary.unpadded = {5, 3};
  ASSERT_TRUE(write_synthetic(folder.path() / "from", FileFormat::kRaw, {vocabulary}, 1).ok());
  TensorEntry other = vocabulary;
  other.shape = {6, 3};
  other.layout = layout_of({{"tp", 3}}, {{0}, {}});
  const Target target{.format = FileFormat::kRaw, .tensors = {other}};
  ASSERT_EQ(converted(folder.path() / "from", target, folder.path() / "to"), "done");
  EXPECT_EQ(contents_of(folder.path() / "to", 1), "right");
  const Target back{.format = FileFormat::kRaw, .tensors = {vocabulary}};
  ASSERT_EQ(converted(folder.path() / "to", back, folder.path() / "back"), "done");
  EXPECT_EQ(shards_in(folder.path() / "back"), shards_in(folder.path() / "from"));
}

TEST(Convert, DoesWithoutLostRanksWhereThereAreReplicas) {
  const TemporaryFolder folder;
  const std::vector<MeshAxis> mesh{{"tp", 2}, {"dp", 2}};  // rank = tp + 2 dp
  std::vector<TensorEntry> tensors{
      tensor("weight", ElementType::kBf16, {4, 6}, layout_of(mesh, {{}, {0}}))};
  ASSERT_TRUE(write_synthetic(folder.path() / "from", FileFormat::kRaw, tensors, 1).ok());
  fs::remove(folder.path() / "from/rank-00001.bin");
  const Target target{
      .tensors = {tensor("weight", ElementType::kBf16, {4, 6}, layout_of({{"tp", 3}}, {{}, {0}}))}};
  EXPECT_THAT(
      converted(folder.path() / "from", target, folder.path() / "to"),
      HasSubstr("rank-00001.bin: is missing; by foreshard-checkpoint.json it has the slices of "
                "rank 1 (--down 1"));
  ASSERT_EQ(converted(folder.path() / "from", target, folder.path() / "to", {}, {1}), "done");
  EXPECT_EQ(contents_of(folder.path() / "to", 1), "right");
  EXPECT_THAT(converted(folder.path() / "from", target, folder.path() / "to2", {}, {1, 3}),
              HasSubstr("elements [0:4, 3:6] of tensor 'weight' are lost"));
  EXPECT_THAT(converted(folder.path() / "from", target, folder.path() / "to2", {}, {9}),
              HasSubstr("there is no such rank"));
}

// --- property ----------------------------------------------------------------------------------
std::int64_t between(std::int64_t least, std::int64_t most) {
  return *rc::gen::inRange(least, most + 1);
}

// A random layout of `shape`: 1 to 3 axes, ranks in any order, even where it divides, else uneven.
Layout random_layout(const Shape& shape) {
  Layout layout;
  const std::int64_t axes = between(1, 3);
  std::int64_t ranks = 1;
  for (std::int64_t a = 0; a < axes; ++a) {
    layout.mesh.axes.push_back({"a" + std::to_string(a), between(1, 3)});
    ranks *= layout.mesh.axes.back().size;
  }
  std::vector<std::int32_t> all(static_cast<std::size_t>(ranks) + 3);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
  for (std::size_t i = all.size(); i-- > 1;)
    std::swap(all[i], all[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(i)))]);
  layout.mesh.ranks.assign(all.begin(), all.begin() + ranks);
  layout.attribute.dims.resize(shape.size());
  layout.attribute.sizes.resize(shape.size());
  for (Axis axis = 0; axis < static_cast<Axis>(axes); ++axis) {
    const std::int64_t d = between(-1, static_cast<std::int64_t>(shape.size()) - 1);
    if (d >= 0) layout.attribute.dims[static_cast<std::size_t>(d)].push_back(axis);
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t parts = ways(layout.attribute.dims[d], layout.mesh.axes);
    if (parts == 1 || (shape[d] % parts == 0 && between(0, 1) == 0)) continue;
    std::int64_t rest = shape[d];
    auto& sizes = layout.attribute.sizes[d];
    for (std::int64_t i = 1; i < parts; ++i) {
      sizes.push_back(between(0, rest));
      rest -= sizes.back();
    }
    sizes.push_back(rest);
  }
  return layout;
}

TEST(Convert, ThereAndBackGivesTheSameBytes) {
  EXPECT_TRUE(rc::check("A -> B -> A is the identity on every file", [] {
    constexpr ElementType kTypes[] = {ElementType::kBf16, ElementType::kF32, ElementType::kI8,
                                      ElementType::kF64};
    std::vector<TensorEntry> a;
    const std::int64_t count = between(1, 4);
    for (std::int64_t t = 0; t < count; ++t) {
      Shape shape(static_cast<std::size_t>(between(0, 4)));
      for (auto& extent : shape) extent = between(0, shape.size() == 4 ? 9 : 40);
      a.push_back(
          tensor("t" + std::to_string(t), kTypes[between(0, 3)], shape, random_layout(shape)));
    }
    std::vector<TensorEntry> b = a;
    for (TensorEntry& entry : b) entry.layout = random_layout(entry.shape);
    const MemoryFolder folder;
    const auto format = between(0, 1) == 0 ? FileFormat::kRaw : FileFormat::kSafetensors;
    const auto error = write_synthetic(folder.path() / "a", format, a, 5);
    RC_ASSERT(error.ok());
    ConvertOptions options{.max_memory = 1_MiB,
                           .threads = static_cast<std::int32_t>(between(1, 2))};
    RC_ASSERT(converted(folder.path() / "a", {.tensors = b}, folder.path() / "b", options) ==
              "done");
    RC_ASSERT(contents_of(folder.path() / "b", 5) == "right");
    RC_ASSERT(converted(folder.path() / "b", {.format = format, .tensors = a},
                        folder.path() / "back", options) == "done");
    RC_ASSERT(shards_in(folder.path() / "back") == shards_in(folder.path() / "a"));
  }));
}

// --- faults ------------------------------------------------------------------------------------
class ConvertFaults : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_synthetic(from_, FileFormat::kSafetensors, tensor_parallel(2, 1), 7).ok());
  }
  void corrupt(std::int64_t offset, const std::string& bytes) {
    std::fstream file(shard_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset < 0 ? static_cast<std::int64_t>(fs::file_size(shard_)) + offset : offset);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  // The fault; checks that nothing was made.
  std::string fault(const ConvertOptions& options = {}) {
    const std::string message = converted(from_, target_, to_, options);
    EXPECT_FALSE(fs::exists(to_)) << message;
    EXPECT_FALSE(fs::exists(partial_of(to_))) << message;
    return message;
  }

  TemporaryFolder folder_;
  fs::path from_ = folder_.path() / "from";
  fs::path to_ = folder_.path() / "to";
  fs::path shard_ = from_ / "rank-00001.safetensors";
  Target target_{.tensors = tensor_parallel(4, 1)};
};

TEST_F(ConvertFaults, MissingShard) {
  fs::remove(shard_);
  EXPECT_THAT(fault(), HasSubstr("rank-00001.safetensors: is missing"));
}
TEST_F(ConvertFaults, TruncatedShard) {
  fs::resize_file(shard_, fs::file_size(shard_) - 1);
  EXPECT_THAT(fault(), HasSubstr("it is truncated"));
}
TEST_F(ConvertFaults, FlippedBit) {
  corrupt(-3, "\x55");
  EXPECT_THAT(fault(), HasSubstr("rank-00001.safetensors: is damaged: its SHA-256 is "));
}
TEST_F(ConvertFaults, GarbageInTheHeader) {
  corrupt(9, "###");
  EXPECT_THAT(fault(), HasSubstr("the header is not valid JSON at its byte 2"));
}
TEST_F(ConvertFaults, LengthOfGarbage) {
  corrupt(0, "garbage!");
  EXPECT_THAT(fault(), HasSubstr("above the limit"));
}
TEST_F(ConvertFaults, TensorThatTheFileLacks) {
  corrupt(static_cast<std::int64_t>(bytes_of_file(shard_).find("layers.1.qkv")), "layers.7.qkv");
  EXPECT_THAT(fault(), HasSubstr("lacks tensor 'layers.1.qkv'"));
}
TEST_F(ConvertFaults, TensorThatTheManifestLacks) {
  const auto manifest = manifest_from_json(bytes_of_file(from_ / kManifestName));
  Manifest less = *manifest;
  less.tensors.pop_back();
  folder_.write("from/" + std::string(kManifestName), to_json(less));
  EXPECT_THAT(fault(), HasSubstr("has tensor 'layers.1.norm', which the manifest does not place"));
}
TEST_F(ConvertFaults, ShapeUnlikeTheManifest) {
  corrupt(static_cast<std::int64_t>(bytes_of_file(shard_).find("[24,24]")), "[48,12]");
  EXPECT_THAT(fault(), HasSubstr("is BF16[48,12], but by the manifest rank 1 has BF16[24,24]"));
}
TEST_F(ConvertFaults, BrokenManifest) {
  folder_.write("from/" + std::string(kManifestName), "{");
  EXPECT_THAT(fault(), HasSubstr("foreshard-checkpoint.json: no JSON"));
}
TEST_F(ConvertFaults, NoCheckpoint) {
  fs::remove(from_ / kManifestName);
  EXPECT_THAT(fault(), HasSubstr("is not a checkpoint: it has neither foreshard-checkpoint.json"));
  fs::remove_all(from_);
  EXPECT_THAT(fault(), HasSubstr("there is no such directory"));
}
TEST_F(ConvertFaults, TargetThatDoesNotFit) {
  target_.tensors[0].layout = layout_of({{"tp", 5}}, {{}, {0}});
  EXPECT_THAT(fault(), StartsWith("tensor 'layers.0.qkv': "));
  target_.tensors[0] = tensor("layers.0.qkv", ElementType::kF32, {24, 48}, {});
  target_.tensors[0].layout = layout_of({{"tp", 1}}, {{}, {}});
  EXPECT_THAT(fault(), HasSubstr("is BF16[24,48] in the source and F32[24,48] in the target"));
  target_.tensors[0] = tensor_parallel(4, 1)[0];
  target_.tensors[0].shape = {24, 52};
  EXPECT_THAT(fault(), HasSubstr("without padding [24,48] and [24,52]"));
  target_.tensors[0].name = "other";
  EXPECT_THAT(fault(), HasSubstr("has no tensor 'other', which the target wants"));
  target_.tensors.erase(target_.tensors.begin());
  EXPECT_THAT(fault(), HasSubstr("tensor 'layers.0.qkv' has no place in the target"));
  target_.left_out = {"layers.0.qkv"};
  EXPECT_EQ(converted(from_, target_, to_), "done");
}
TEST_F(ConvertFaults, TooLittleMemory) {
  EXPECT_THAT(fault({.max_memory = 100_kB}), HasSubstr("needs at least 1 MiB of memory"));
}
TEST_F(ConvertFaults, TargetThatExists) {
  folder_.write("to/precious.txt", "not ours");
  EXPECT_THAT(converted(from_, target_, to_), HasSubstr("exists and is not a complete checkpoint"));
  EXPECT_THAT(converted(from_, target_, to_, {.replace = true}),
              HasSubstr("is not a complete checkpoint, so it is not replaced"));
  EXPECT_EQ(bytes_of_file(to_ / "precious.txt"), "not ours");
  EXPECT_THAT(converted(from_, target_, from_), HasSubstr("is the source itself"));
  EXPECT_THAT(converted(from_, target_, from_ / "inside"), HasSubstr("is inside the source"));
  folder_.write("other.partial/precious.txt", "not ours");
  EXPECT_THAT(converted(from_, target_, folder_.path() / "other"), HasSubstr("is in the way"));
  EXPECT_THAT(converted(from_, target_, folder_.path() / "no/such/folder"),
              HasSubstr("cannot create: No such file or directory"));
}
TEST_F(ConvertFaults, CompleteTargetIsReplacedOnlyOnDemand) {
  ASSERT_EQ(converted(from_, target_, to_), "done");
  const auto before = shards_in(to_);
  const Target other{.tensors = tensor_parallel(1, 2)};
  EXPECT_THAT(converted(from_, other, to_), HasSubstr("exists already; --force replaces it"));
  EXPECT_EQ(shards_in(to_), before);
  EXPECT_EQ(converted(from_, other, to_, {.replace = true}), "done");
  EXPECT_EQ(shards_in(to_).size(), 2U);
  EXPECT_EQ(contents_of(to_, 7), "right");
  EXPECT_FALSE(fs::exists(partial_of(to_)));
}
TEST_F(ConvertFaults, ReplacingTakesNothingElseAlong) {
  ASSERT_EQ(converted(from_, target_, to_ / "."), "done");
  const Target other{.tensors = tensor_parallel(1, 2)};
  folder_.write("to/notes.txt", "not ours");
  EXPECT_THAT(converted(from_, other, to_, {.replace = true}),
              HasSubstr("notes.txt: is not part of the checkpoint that --force would replace"));
  EXPECT_EQ(bytes_of_file(to_ / "notes.txt"), "not ours");
  fs::remove(to_ / "notes.txt");
  const auto inner = to_ / "source";
  fs::copy(from_, inner);
  EXPECT_THAT(converted(inner, other, to_, {.replace = true}), HasSubstr("has the source in it"));
  EXPECT_EQ(contents_of(inner, 7), "right");
  const auto beside = folder_.path() / "beside.partial";
  fs::copy(from_, beside);
  EXPECT_THAT(converted(beside, other, folder_.path() / "beside"), HasSubstr("has the source"));
  EXPECT_EQ(contents_of(beside, 7), "right");
}

}  // namespace
}  // namespace foreshard::checkpoint
