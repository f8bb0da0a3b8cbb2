// Serial = sharded (R4.7): a tiny model trained one step under a strategy, executed rank by rank in
// double precision, against the same on one rank: the loss of every token, every parameter's
// gradient, and the parameters and moments after Adam with clipping.
#include "tests/oracle/step.h"

#include "tests/seeds.h"
#include "tests/strategies/execute/serial_is_sharded.h"
#include "tests/strategies/execute/tiny_models.h"
#include "tests/test.h"

#include "strategies/parallelism/pipeline.h"

namespace foreshard::execute::step_test {

using Values = std::map<std::int64_t, double>;

Values values_of(const StepResult& result, const std::string& tensor) {
  Values values;
  for (const Held& held : result.held) {
    if (held.tensor != tensor) continue;
    for (std::size_t i = 0; i < held.indices.size(); ++i) values[held.indices[i]] = held.values[i];
  }
  return values;
}

// --- the serial run itself -------------------------------------------------------------------

// Every kind of parameter: the loss changes as its gradient says. The central difference over four
// points is right to about 1e-15 / h of rounding and h^4 of curvature.
TEST(SerialStep, GradientsAreThoseOfTheLoss) {
  std::vector<Model> models = tiny_models();
  models.push_back(tiny_normed(false));  // which one rank alone can normalise
  models.back().qk_norm = QkNorm::kAllHeads;
  models.back().norm = Norm::kLayerNormScale;
  std::ranges::copy(tiny_fused_models(), std::back_inserter(models));
  for (const bool tied : {false, true}) models.push_back(tiny_prediction(tied ? 2 : 1, tied));
  int first =
      0;  // every fourth parameter is nudged, other ones in each model and with each attention
  for (const Model& model : models) {
    for (const bool flash : {true, false}) {
      if (!flash && (model.window > 0 || model.has_latents())) continue;  // fused alone
      Strategy strategy = tiny_strategy(1, 1, 1, 2);
      strategy.framework.value.attention =
          flash ? AttentionImplementation::kFused : AttentionImplementation::kUnfused;
      const StepResult base = executed(model, strategy);
      std::map<std::string, std::int64_t> parameters;  // by name: an element in the middle
      for (const Held& held : base.held) {
        const bool last_layers =
            held.tensor.starts_with("layers.2.") || held.tensor.starts_with("layers.3.");
        if (last_layers || !held.tensor.ends_with(".gradient")) continue;
        const std::string name = held.tensor.substr(0, held.tensor.rfind('.'));
        parameters[name] = held.indices[held.indices.size() / 2 + 1];
      }
      EXPECT_GE(parameters.size(), 15U);
      int turn = first++;
      constexpr double kStep = 1e-4;
      for (const auto& parameter : parameters) {
        if (turn++ % seeds(4, 1) != 0) continue;
        const std::string& name = parameter.first;
        const std::int64_t index = parameter.second;
        const auto loss = [&](double amount) {
          return executed(model, strategy, {.nudge = {name, index, amount}}).loss;
        };
        const double slope =
            (8 * (loss(kStep) - loss(-kStep)) - (loss(2 * kStep) - loss(-2 * kStep))) /
            (12 * kStep);
        EXPECT_NEAR(slope, values_of(base, name + ".gradient").at(index), 2e-9)
            << model.name << ", " << name << " [" << index << "], flash attention: " << flash;
      }
    }
  }
}

// Fused attention is the same mathematics as scores, softmax, dropout and product apart.
TEST(SerialStep, FusedAttentionIsThatInParts) {
  for (const Model& model : {tiny_gpt(), tiny_llama()}) {
    Strategy strategy = tiny_strategy(1, 1, 1, 2);
    const StepResult fused = executed(model, strategy);
    strategy.framework.value.attention = AttentionImplementation::kUnfused;
    EXPECT_THAT(compare(fused, executed(model, strategy), kTolerance).faults, IsEmpty());
  }
}

// Clipping and dropout are at work in what the tests below compare.
TEST(SerialStep, ClipsAndDrops) {
  const Strategy strategy = tiny_strategy(1, 1, 1, 2);
  const StepResult base = executed(tiny_gpt(), strategy);
  EXPECT_GT(base.gradient_norm, StepOptions{}.clip);
  EXPECT_NE(base.loss, executed(tiny_gpt(), strategy, {.dropout = 0}).loss);
  EXPECT_NE(values_of(base, "layers.0.qkv.weight"),
            values_of(executed(tiny_gpt(), strategy, {.clip = 1e9}), "layers.0.qkv.weight"));
  // Close to log(21 + padding): the model knows nothing yet.
  EXPECT_NEAR(base.loss, std::log(21), 1.5);
}

// --- sharded ---------------------------------------------------------------------------------

struct Shape {
  std::int64_t tensor;
  std::int64_t pipeline;
  std::int64_t data;
  bool sequence = false;
  std::int64_t zero = 0;
  std::int64_t virtual_stages = 1;
  std::string schedule = "1f1b";
  std::string order = "tdp";  // fastest axis first
};

// One dimension at a time, then together, on up to 16 ranks.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> list{
      {2, 1, 1},
      {4, 1, 1, true},
      {1, 2, 1},
      {1, 4, 1, false, 0, 1, "gpipe"},
      {1, 2, 1, false, 0, 2, "interleaved"},
      {1, 1, 2},
      {1, 1, 3, false, 1},
      {1, 1, 2, false, 2},
      {1, 1, 4, false, 3},
      {2, 2, 1, true, 0, 2, "interleaved"},
      {2, 1, 3, true, 1},
      {2, 1, 2, false, 3},
      {1, 2, 2, false, 1, 1, "1f1b", "dpt"},
      {2, 2, 2, true, 1, 1, "1f1b", "dtp"},
      {2, 2, 2, true, 2, 2, "interleaved", "ptd"},
      {4, 2, 2, false, 3, 1, "gpipe"},
  };
  return list;
}

Strategy strategy_of(const Shape& shape) {
  Strategy s = tiny_strategy(shape.tensor, shape.pipeline, shape.data);
  s.sequence_parallel = shape.sequence;
  s.zero_stage = shape.zero;
  s.virtual_stages = shape.virtual_stages;
  s.schedule = shape.schedule;
  s.rank_order.clear();
  for (const char axis : shape.order)
    s.rank_order.emplace_back(axis == 't' ? "tensor" : axis == 'd' ? "data" : "pipeline");
  return s;
}

// Every shape with every family; the habits of frameworks, recomputation and attention take turns.
TEST(SerialIsSharded, ForEveryDimensionOfParallelism) {
  Summary summary;
  std::size_t turn = 0;
  std::vector<Model> models = tiny_models();
  const std::size_t in_parts = models.size();
  std::ranges::copy(tiny_fused_models(), std::back_inserter(models));
  for (std::size_t i = 0; i < shapes().size(); ++i) {
    for (std::size_t m = 0; m < models.size(); ++m, ++turn) {
      Strategy s = strategy_of(shapes()[i]);
      Framework& framework = s.framework.value;
      framework.attention = (i + m) % 2 == 0 || m >= in_parts ? AttentionImplementation::kFused
                                                              : AttentionImplementation::kUnfused;
      framework.fused_gradient_accumulation = turn % 2 == 0;
      framework.gradient_reduction =
          turn % 4 < 2 ? GradientReduction::kOverlapped : GradientReduction::kAfterBackward;
      framework.overlap_parameter_gather = turn % 5 == 0;
      framework.pipeline_scatter_gather = turn % 3 != 0;
      framework.vocabulary_multiple = turn % 3 == 1 ? 8 : 1;
      s.recompute = std::array{Recompute::kNone, Recompute::kSelective, Recompute::kFull}[turn % 3];
      s.micro_batch = turn % 7 == 0 ? 2 : 1;
      s.global_batch *= s.micro_batch;
      expect_serial_is_sharded(models[m], s, summary);
    }
  }
  EXPECT_EQ(summary.strategies, 208);
  print(summary);
}

// Every schedule with every family, on two and four stages, ZeRO and recomputation in turn: by
// default five of eleven cases. A tied table lies on one stage of a V. Backward passes in two parts
// hold no more than lowering says.
TEST(SerialIsSharded, ForEverySchedule) {
  Summary summary;
  std::size_t turn = 0;
  std::vector<Model> models = tiny_models();
  for (const bool tied : {false, true}) models.push_back(tiny_prediction(tied ? 2 : 1, tied));
  for (const schedule::Schedule& schedule : schedule::schedules()) {
    for (const Model& model : models) {
      for (const std::int64_t stages : {2, 4}) {
        Strategy s = tiny_strategy(turn % 2 == 0 ? 2 : 1, stages, turn % 3 == 0 ? 2 : 1);
        s.sequence_parallel = turn % 4 == 0;
        s.schedule = schedule.name;
        s.virtual_stages = schedule.fewest_chunks;
        s.global_batch = 2 * stages * s.data_parallel;
        s.zero_stage = static_cast<std::int64_t>(turn % 4);
        s.recompute =
            std::array{Recompute::kNone, Recompute::kSelective, Recompute::kFull}[turn % 3];
        s.framework.value.pipeline_transfers =
            turn % 5 < 2 ? PipelineTransfers::kBlocking : PipelineTransfers::kOverlapped;
        s.framework.value.gradient_reduction =
            turn % 7 < 4 ? GradientReduction::kOverlapped : GradientReduction::kAfterBackward;
        s.framework.value.fused_gradient_accumulation = turn % 2 == 0;
        s.layers_per_stage = even_split(model.layers, s.stages());
        if (s.schedule == schedule::kCustom) {
          s.schedule_actions.assign(static_cast<std::size_t>(stages), "");
          for (std::string& actions : s.schedule_actions)
            for (std::int64_t m = 0; m < s.micro_batches(); ++m)
              actions +=
                  m % 2 == 0 ? fmt::format("F{0} I{0} W{0} ", m) : fmt::format("F{0} B{0} ", m);
        }
        if (model.tables_behind() > 0 && last_stage(s) == 0) s.zero_stage %= 2;
        if (turn % 11 < seeds(5U, 11U))
          expect_serial_is_sharded(model, s, summary, {turn, turn + 1});
        ++turn;
      }
    }
  }
  print(summary);
}

// Each shape of ranks with modules that predict more tokens: their table is that of the embedding,
// on one stage or on two, and with a tied output projection that of all three. By default half of
// the cases.
TEST(SerialIsSharded, WithPredictionsOfMoreTokens) {
  Summary summary;
  std::size_t turn = 0;
  for (const Shape& shape : shapes()) {
    for (const std::int64_t modules : {1, 2}) {
      for (const bool tied : {false, true}) {
        Strategy s = strategy_of(shape);
        s.framework.value.fused_gradient_accumulation = turn % 2 == 0;
        s.framework.value.gradient_reduction =
            turn % 3 == 0 ? GradientReduction::kAfterBackward : GradientReduction::kOverlapped;
        s.framework.value.overlap_parameter_gather = turn % 5 == 0;
        s.recompute =
            std::array{Recompute::kNone, Recompute::kSelective, Recompute::kFull}[turn % 3];
        if (turn % 7 < seeds(3U, 7U))
          expect_serial_is_sharded(tiny_prediction(modules, tied), s, summary, {turn, turn + 1});
        ++turn;
      }
    }
  }
  print(summary);
}

// Stages of unequal size, one of them without a layer, share a tied table.
TEST(SerialIsSharded, WithStagesOfUnequalSize) {
  Summary summary;
  Strategy s = tiny_strategy(2, 3, 2);
  s.layers_per_stage = {1, 3, 0};
  for (const std::int64_t zero : {0, 1, 2, 3}) {
    s.zero_stage = zero;
    expect_serial_is_sharded(tiny_gpt(), s, summary);
  }
}

// --- what a comparison finds -----------------------------------------------------------------

StepResult one_tensor(std::vector<std::int64_t> indices, std::vector<double> values) {
  return {.held = {{"w", 3, std::move(indices), std::move(values)}}};
}

TEST(Comparison, NamesTensorRankAndElement) {
  const StepResult serial = one_tensor({0, 1, 2}, {1, -4, 2});
  const Comparison same = compare(serial, one_tensor({0, 1, 2}, {1, -4, 2 + 4e-12}), 1e-10);
  EXPECT_THAT(same.faults, IsEmpty());
  EXPECT_EQ(same.elements, 3);
  EXPECT_NEAR(same.worst, 1e-12, 1e-15);

  EXPECT_THAT(compare(serial, one_tensor({0, 1, 2}, {1, -4.5, 3}), 1e-10).faults,
              ElementsAre("w on rank 3, element 2: 3 where the serial run has 2 (relative "
                          "difference 0.25); 2 such values"));
  const double unread = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(compare(serial, one_tensor({0, 1, 2}, {1, unread, 3}), 1e-10).faults,
              ElementsAre(HasSubstr("element 1: nan where the serial run has")));
  EXPECT_THAT(compare(serial, one_tensor({0, 2}, {1, 2}), 1e-10).faults,
              ElementsAre("w: 1 of 3 elements are on no rank"));
  EXPECT_THAT(compare(serial, one_tensor({0, 1, 2, 3}, {1, -4, 2, 0}), 1e-10).faults,
              ElementsAre(HasSubstr("element 3: 0 where the serial run has nan")));
}

}  // namespace foreshard::execute::step_test
