// What a search offers, its framework can be told: every strategy that is listed for a framework
// with a format is written in that format (strategies/launch), and so is what families hold.
#include "strategies/launch/abilities.h"

#include "tests/test.h"

#include "sim/search/family.h"
#include "sim/search/space.h"
#include "strategies/launch/launch.h"

namespace foreshard::search {
namespace {

Model dense() {
  Model model;
  model.name = "dense";
  model.layers = 9;  // that do not divide into two or four stages
  model.hidden = 1024;
  model.heads = 8;
  model.vocabulary = 1000;
  model.sequence = 512;
  return model;
}

Model sparse() {
  Model model = dense();
  model.layers = 8;
  model.experts = 8;
  model.experts_per_token = 2;
  return model;
}

Strategy base_of(const std::string& framework) {
  auto facts = yaml::Loader(shipped_options()).read_ref<Framework>(framework);
  EXPECT_TRUE(facts) << framework;
  Strategy strategy;
  strategy.global_batch = 32;
  strategy.framework = {.value = *facts, .name = framework};
  return strategy;
}

void expect_written(const Strategy& strategy, const Model& model) {
  const auto format = launch::format_of(*strategy.framework);
  const bool with_model = format == "megatron";  // Others have none, or other ones.
  const auto written = launch::export_launch(format, strategy, with_model ? &model : nullptr);
  ASSERT_TRUE(written) << strategy.framework->name << ": " << in_words(strategy) << "\n"
                       << written.error().message;
}

class Offered : public testing::TestWithParam<std::string> {};

TEST_P(Offered, IsWrittenForItsFramework) {
  const Strategy base = base_of(GetParam());
  for (const Model& model : {dense(), sparse()}) {
    for (const std::int64_t level : {1, 2, 3}) {
      SearchSpace space{.level = level};
      if (level == 3) space.micro_batch = {1};
      constexpr std::array<std::int64_t, 1> kFour{4};
      const auto listed = enumerate(space, base, model, 8, kFour);
      EXPECT_GT(listed.candidates.size(), 0U) << GetParam() << " " << level;
      std::set<std::string> known;  // a sample of those that are alike in words
      for (const Strategy& one : listed.candidates) {
        if (!known.insert(in_words(one)).second) continue;
        expect_written(one, model);
        if (HasFatalFailure()) return;
      }
    }
    const RecomputeChoices choices = recompute_choices(model, base, /*any_framework=*/false);
    Strategy uncut = base;
    uncut.data_parallel = 8;
    if (launch::limitation_in(uncut, model)) uncut.zero_stage = 3;  // FSDP shards something
    const Family family(uncut, model, choices);
    for (std::size_t choice = 0; choice < choices.all.size(); ++choice)
      for (const std::int64_t layers : {0, 3}) {
        if (layers > 0 && !choices.counts_layers(choice)) continue;
        expect_written(
            family.strategy_of({.choice = static_cast<std::int32_t>(choice), .layers = layers}),
            model);
        if (HasFatalFailure()) return;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Frameworks, Offered,
                         testing::Values("megatron-lm", "megatron-core-0.8", "megatron-lm-2022",
                                         "megatron-lm-sc21", "megatron-bridge", "nemo",
                                         "torchtitan", "deepspeed-zero3", "pytorch-fsdp"),
                         [](const auto& framework) {
                           std::string name = framework.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == '-' || c == '.'; }, '_');
                           return name;
                         });

// ZeRO 3 is no part of Megatron's own data parallelism: it is tried where it is named, or where any
// framework will do.
TEST(Offers, WhatIsNamedAllTheSame) {
  const Strategy base = base_of("megatron-lm");
  const auto stages = [&](const SearchSpace& space) {
    std::set<std::int64_t> found;
    for (const Strategy& one : enumerate(space, base, dense(), 8).candidates)
      found.insert(one.zero_stage);
    return found;
  };
  EXPECT_THAT(stages({.level = 1}), ElementsAre(0, 1));
  EXPECT_THAT(stages({.level = 1, .any_framework = true}), ElementsAre(0, 1, 3));
  EXPECT_THAT(stages({.level = 1, .zero_stage = {3}}), ElementsAre(0, 3));
  EXPECT_GT(enumerate({.level = 1}, base, dense(), 8).misfits.at(std::string(kFrameworkMisfit)), 0);
}

// Megatron names modules; of the other sets there are as many as of parts.
TEST(Offers, SetsOfPartsThatHaveNames) {
  const Strategy base = base_of("megatron-lm");
  const auto some = recompute_choices(dense(), base, false);
  for (const Recomputation& choice : some.all)
    EXPECT_TRUE(launch::can_recompute(*base.framework, choice, false));
  // Core attention, norms, the feed-forward layer: eight sets, of which one is empty; and full.
  EXPECT_EQ(some.all.size(), 8U);
  EXPECT_GT(recompute_choices(dense(), base).all.size(), some.all.size());
  EXPECT_FALSE(some.counts_layers(0));
  EXPECT_TRUE(some.counts_layers(some.all.size() - 1));
}

}  // namespace
}  // namespace foreshard::search
