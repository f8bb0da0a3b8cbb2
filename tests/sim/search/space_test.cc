#include "sim/search/space.h"

#include "tests/test.h"

namespace foreshard::search {
namespace {

using testing::Each;
using testing::Field;
using testing::Pair;
using testing::SizeIs;

Model small_model() {
  Model model;
  model.name = "small";
  model.layers = 8;
  model.hidden = 1024;
  model.heads = 8;
  model.vocabulary = 1000;
  model.sequence = 512;
  return model;
}

Strategy batch_of(std::int64_t sequences) {
  Strategy strategy;
  strategy.global_batch = sequences;
  return strategy;
}

// One value of everything but the three sizes.
SearchSpace sizes_only() {
  return {.level = 2,
          .micro_batch = {1},
          .virtual_stages = {1},
          .zero_stage = {0},
          .recompute = {Recompute::kNone},
          .uneven = false,
          .rank_order = {{"tensor", "data", "pipeline"}}};
}

// 8 layers on 7 stages: the first has two. No more stages than layers.
TEST(Enumerate, CutsLayersThatDoNotDivide) {
  SearchSpace space = sizes_only();
  space.tensor_parallel = {1};
  space.pipeline_parallel = {4, 7, 9};
  space.data_parallel = {1};
  space.uneven = true;
  const auto found = enumerate(space, batch_of(8), small_model(), 9);
  ASSERT_THAT(found.candidates, SizeIs(2));
  EXPECT_THAT(found.candidates[0].layers_per_stage, IsEmpty());
  EXPECT_THAT(found.candidates[1].layers_per_stage, ElementsAre(2, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(found.misfits, UnorderedElementsAre(Pair("pipeline_parallel", 1)));
  space.level = 0;  // equal stages alone
  EXPECT_THAT(enumerate(space, batch_of(8), small_model(), 9).candidates, SizeIs(1));
}

// Of three axes, all orders differ; of two, where one has one rank, two; of one, none does. On one
// node (no smaller number of devices), orders do not matter.
TEST(Enumerate, TriesOrdersOfRanksThatDiffer) {
  constexpr std::array<std::int64_t, 1> kFour{4};
  SearchSpace space = sizes_only();
  space.level = 3;
  space.sequence_parallel = true;
  space.rank_order = {};
  const auto count = [&](std::int64_t tensor, std::int64_t pipeline, std::int64_t data,
                         std::span<const std::int64_t> fewer) {
    space.tensor_parallel = {tensor};
    space.pipeline_parallel = {pipeline};
    space.data_parallel = {data};
    return enumerate(space, batch_of(8), small_model(), 8, fewer).candidates.size();
  };
  EXPECT_EQ(count(2, 2, 2, kFour), 6U);
  EXPECT_EQ(count(4, 2, 1, kFour), 2U);
  EXPECT_EQ(count(8, 1, 1, kFour), 1U);
  EXPECT_EQ(count(2, 2, 2, {}), 1U);
  space.level = 2;
  EXPECT_EQ(count(2, 2, 2, kFour), 2U);
  space.level = 1;
  EXPECT_EQ(count(2, 2, 2, kFour), 1U);
}

// With 4 of 8 devices as well: 4 = 2^2 in three ordered factors, C(2 + 2, 2) = 6 ways more. Where
// replicas are named or none may be idle, that changes nothing.
TEST(Enumerate, FillsSmallerNumbersOfDevicesToo) {
  constexpr std::array<std::int64_t, 1> kFour{4};
  SearchSpace space = sizes_only();
  const auto found = enumerate(space, batch_of(8), small_model(), 8, kFour);
  EXPECT_EQ(found.considered, 16);
  EXPECT_EQ(std::ranges::count(found.candidates, 4, &Strategy::devices), 6);
  space.idle = false;
  EXPECT_EQ(enumerate(space, batch_of(8), small_model(), 8, kFour).considered, 10);
  space = sizes_only();
  space.data_parallel = {8};
  EXPECT_EQ(enumerate(space, batch_of(8), small_model(), 8, kFour).considered, 1);
}

// 8 = 2^3 in three ordered factors: the three twos fall into three boxes, C(3 + 2, 2) = 10 ways.
TEST(Enumerate, EightDevicesHaveTenFactorisations) {
  const auto found = enumerate(sizes_only(), batch_of(8), small_model(), 8);
  EXPECT_EQ(found.considered, 10);
  EXPECT_THAT(found.candidates, SizeIs(10));
  EXPECT_THAT(found.misfits, IsEmpty());
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> sizes;
  for (const Strategy& one : found.candidates) {
    sizes.emplace(one.tensor_parallel, one.pipeline_parallel, one.data_parallel);
    EXPECT_EQ(one.devices(), 8);
    EXPECT_EQ(one.sequence_parallel, one.tensor_parallel > 1);
  }
  EXPECT_THAT(sizes, SizeIs(10));
}

// Four experts over 2 tensor x 4 data ranks: each split as all else is, shared by 1, 2 or 4 data
// ranks; or whole, copied on all, or shared by the tensor ranks and 1 or 2 data ranks.
TEST(Enumerate, SharesExpertsAmongRanks) {
  Model model = small_model();
  model.experts = 4;
  model.experts_per_token = 2;
  SearchSpace space = sizes_only();
  space.tensor_parallel = {2};
  space.pipeline_parallel = {1};
  std::set<std::tuple<std::int64_t, std::int64_t>> ways;
  for (const Strategy& one : enumerate(space, batch_of(8), model, 8).candidates) {
    EXPECT_EQ(one.devices(), 8);
    ways.emplace(one.expert_parallel, one.expert_tensor_parallel);
  }
  EXPECT_EQ(ways, (std::set<std::tuple<std::int64_t, std::int64_t>>{
                      {1, 0}, {2, 0}, {4, 0}, {1, 1}, {2, 1}, {4, 1}}));
}

// Sequences are split where each rank keeps 8,192 tokens, or as the space says.
TEST(Enumerate, SplitsLongSequences) {
  Model model = small_model();
  const auto sizes = [&](const SearchSpace& space) {
    std::set<std::int64_t> found;
    for (const Strategy& one : enumerate(space, batch_of(8), model, 8).candidates)
      found.insert(one.context_parallel);
    return found;
  };
  SearchSpace space = sizes_only();
  EXPECT_EQ(sizes(space), (std::set<std::int64_t>{1}));
  space.context_parallel = {1, 8};
  EXPECT_EQ(sizes(space), (std::set<std::int64_t>{1, 8}));
  space.context_parallel.clear();
  model.sequence = 32768;
  EXPECT_EQ(sizes(space), (std::set<std::int64_t>{1, 2, 4}));
}

// 12 = 2^2 x 3: C(4, 2) x C(3, 2) = 6 x 3 = 18.
TEST(Enumerate, OddFactorsCountToo) {
  SearchSpace space = sizes_only();
  space.idle = false;
  EXPECT_EQ(enumerate(space, batch_of(12), small_model(), 12).considered, 18);
}

// Seven devices, 8 heads and layers, batches of 8: tensor x pipeline 1, 2 and 4 leave room for 7, 3
// and 1 replicas, of which 4, 2 and 1 share the batch. 1, 2 and 3 ways to split these: six
// strategies of 4 devices each. Beside them the factorisations of 7 itself: 7 replicas have no
// batch (but 4 have), tensor 7 and pipeline 7 do not suit the model.
TEST(Enumerate, LeavesDevicesOverWhereSizesDoNotDivide) {
  const auto found = enumerate(sizes_only(), batch_of(8), small_model(), 7);
  EXPECT_THAT(found.candidates, SizeIs(6));
  EXPECT_THAT(found.candidates,
              Each(testing::ResultOf([](const Strategy& s) { return s.devices(); }, 4)));
  EXPECT_EQ(found.most_devices, 4);
  EXPECT_THAT(found.misfits,
              UnorderedElementsAre(Pair("tensor_parallel", 1), Pair("pipeline_parallel", 1)));
  SearchSpace space = sizes_only();
  space.idle = false;
  EXPECT_THAT(enumerate(space, batch_of(8), small_model(), 7).candidates, IsEmpty());
}

// Pipelines of 2 with 2 replicas on 7 devices leave 3 over, with 1 replica 5. Fewer can be faster,
// where the others are slow or badly connected.
TEST(Enumerate, TriesEveryNumberOfReplicasWanted) {
  SearchSpace space = sizes_only();
  space.tensor_parallel = {1};
  space.pipeline_parallel = {2};
  space.data_parallel = {1, 2};
  const auto found = enumerate(space, batch_of(8), small_model(), 7);
  ASSERT_THAT(found.candidates, SizeIs(2));
  EXPECT_EQ(found.candidates.front().data_parallel, 2);
  EXPECT_EQ(found.candidates.back().data_parallel, 1);
}

// ZeRO 2 asked for: of 10 factorisations of 8, the 4 without pipeline may have it.
TEST(Enumerate, CountsZeroStagesThatPipelinesDoNotHave) {
  SearchSpace space = sizes_only();
  space.zero_stage = {2};
  const auto found = enumerate(space, batch_of(8), small_model(), 8);
  EXPECT_EQ(found.considered, 10);
  EXPECT_THAT(found.candidates, SizeIs(4));
  EXPECT_THAT(found.misfits, UnorderedElementsAre(Pair("zero_stage", 6)));
}

// With 4 heads, tensor 8 (one factorisation) is impossible; a batch of 4 rules out data 8 (one).
TEST(Enumerate, CountsMisfitsByTheKnobAtFault) {
  Model model = small_model();
  model.heads = 4;
  SearchSpace space = sizes_only();
  space.idle = false;
  const auto found = enumerate(space, batch_of(4), model, 8);
  EXPECT_EQ(found.considered, 10);
  EXPECT_THAT(found.candidates, SizeIs(8));
  EXPECT_THAT(found.misfits,
              UnorderedElementsAre(Pair("tensor_parallel", 1), Pair("global_batch", 1)));
}

// Pipeline 4, data 2, batch 8: 4 micro-batches of 1 suit interleaving over 4 stages, 2 of 2 do not.
TEST(Enumerate, InterleavesOnlyMultiplesOfTheStages) {
  SearchSpace space = sizes_only();
  space.tensor_parallel = {1};
  space.pipeline_parallel = {4};
  space.virtual_stages = {2};
  space.micro_batch = {1, 2};
  const auto found = enumerate(space, batch_of(8), small_model(), 8);
  ASSERT_THAT(found.candidates, SizeIs(1));
  EXPECT_EQ(found.candidates.front().schedule, "interleaved");
  EXPECT_EQ(found.candidates.front().micro_batch, 1);
  EXPECT_THAT(found.misfits, UnorderedElementsAre(Pair("virtual_stages", 1)));
}

TEST(Enumerate, ShardsGradientsAndParametersWithoutPipelineOnly) {
  SearchSpace space = sizes_only();
  space.zero_stage = {};
  const auto found = enumerate(space, batch_of(8), small_model(), 8);
  std::multiset<std::int64_t> alone;
  for (const Strategy& one : found.candidates) {
    if (one.pipeline_parallel > 1) {
      EXPECT_LE(one.zero_stage, 1);
    }
    if (one.data_parallel == 1) {
      EXPECT_EQ(one.zero_stage, 0);
    }
    if (one.tensor_parallel == 2 && one.pipeline_parallel == 1) alone.insert(one.zero_stage);
  }
  EXPECT_EQ(alone, (std::multiset<std::int64_t>{0, 1, 2, 3}));
}

// Of 8 devices, 8 or 4 replicas divide into two sets of more than one rank.
TEST(Enumerate, KeepsSetsOfShardsWhereTheyDivide) {
  SearchSpace space = sizes_only();
  space.zero_stage = {0, 1};
  Strategy base = batch_of(8);
  base.shard_replicas = 2;
  const auto found = enumerate(space, base, small_model(), 8);
  std::multiset<std::int64_t> sharded;
  for (const Strategy& one : found.candidates) {
    EXPECT_EQ(one.shard_replicas, one.zero_stage == 0 ? 1 : 2);
    if (one.zero_stage == 1) sharded.insert(one.data_parallel);
  }
  EXPECT_EQ(sharded, (std::multiset<std::int64_t>{4, 4, 8}));
  EXPECT_GT(found.misfits.at("shard_replicas"), 0);
}

TEST(Enumerate, HigherLevelsTryMore) {
  std::int64_t before = 0;
  for (const std::int64_t level : {0, 1, 2, 3}) {
    SearchSpace space;
    space.level = level;
    const auto found = enumerate(space, batch_of(96), small_model(), 16);
    EXPECT_GT(found.considered, before);
    before = found.considered;
  }
}

TEST(Enumerate, KeepsWhatTheStudyDecides) {
  Strategy base = batch_of(64);
  base.precision = DType::kFp16;
  base.layers_per_stage = {8};
  base.tensor_parallel = 3;
  const auto found = enumerate({}, base, small_model(), 8);
  EXPECT_THAT(found.candidates, Each(Field(&Strategy::precision, DType::kFp16)));
  EXPECT_THAT(found.candidates, Each(Field(&Strategy::layers_per_stage, IsEmpty())));
}

// How many layers of a stage the study recomputes says nothing about other strategies.
TEST(Enumerate, RecomputesAllLayersWhateverTheStudyDoes) {
  Strategy base = batch_of(8);
  base.recompute = Recompute::kFull;
  base.recompute_layers = 1;
  EXPECT_THAT(enumerate({}, base, small_model(), 8).candidates,
              Each(Field(&Strategy::recompute_layers, 0)));
}

TEST(Enumerate, TriesOnceWhatIsNamedTwice) {
  SearchSpace space = sizes_only();
  const auto once = enumerate(space, batch_of(8), small_model(), 8).candidates.size();
  space.micro_batch = {1, 1};
  space.recompute = {Recompute::kNone, Recompute::kNone};
  EXPECT_THAT(enumerate(space, batch_of(8), small_model(), 8).candidates, SizeIs(once));
}

TEST(Enumerate, StopsWhenAsked) {
  int asked = 0;
  const auto found = enumerate({}, batch_of(8), small_model(), 8, {}, [&] { return ++asked > 3; });
  EXPECT_FALSE(found.is_whole);
  EXPECT_FALSE(found.candidates.empty());
  EXPECT_LT(found.considered, enumerate({}, batch_of(8), small_model(), 8).considered);
}

// 0 ranks would be divided by; so many that their product is no number would be, too.
TEST(SearchSpace, RefusesSizesThatAreNone) {
  const auto fault = [](const std::string& text) {
    const auto space = yaml::Loader(yaml::Options{}).read_text<SearchSpace>(text, "space.yaml");
    return message_of(space, "");
  };
  for (const char* key :
       {"tensor_parallel", "pipeline_parallel", "data_parallel", "context_parallel",
        "expert_parallel", "micro_batch", "virtual_stages", "shard_replicas"}) {
    for (const char* value : {"0", "-8", "4611686018427387904"})
      EXPECT_THAT(fault(std::string(key) + ": [1, " + value + "]\n"),
                  HasSubstr(" is not between 1 and 1048576"))
          << key;
  }
  EXPECT_THAT(fault("zero_stage: [7]\n"), HasSubstr("7 is not between 0 and 3"));
  EXPECT_THAT(fault("expert_tensor_parallel: [-1]\n"), HasSubstr("-1 is not between 0"));
}

TEST(SearchSpace, ReadsYaml) {
  yaml::Loader loader(yaml::Options{.catalogue = {}, .overrides = {}});
  const auto space = value_of(loader.read_text<SearchSpace>(
      "tensor_parallel: [4, 8]\nrecompute: [full]\nsequence_parallel: false\n", "space.yaml"));
  EXPECT_EQ(space.tensor_parallel, (std::vector<std::int64_t>{4, 8}));
  EXPECT_EQ(space.recompute, std::vector<Recompute>{Recompute::kFull});
  EXPECT_EQ(space.sequence_parallel, false);
  const auto wrong = loader.read_text<SearchSpace>("level: 4\n", "space.yaml");
  EXPECT_FALSE(wrong);
  const auto orders = value_of(
      loader.read_text<SearchSpace>("rank_order: [[tensor, pipeline, data]]\n", "space.yaml"));
  EXPECT_THAT(orders.rank_order, SizeIs(1));
  EXPECT_THAT(message_of(loader.read_text<SearchSpace>("rank_order: [[tensor, data, data]]\n",
                                                       "space.yaml")),
              HasSubstr("names each of tensor, data and pipeline"));
}

}  // namespace
}  // namespace foreshard::search
