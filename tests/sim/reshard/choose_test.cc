// What is chosen on real clusters, against gather and slice and against the bound.
#include "strategies/reshard/choose.h"

#include <nlohmann/json.hpp>

#include "tests/sim/reshard/cases.h"
#include "tests/sim/reshard/catalogue.h"
#include "tests/test.h"

#include "sim/simulate/cost.h"
#include "sim/simulate/simulate.h"
#include "strategies/graph/layout.h"
#include "strategies/program/ir/verify.h"
#include "strategies/reshard/explain.h"
#include "strategies/reshard/program.h"

namespace foreshard::reshard::choose_test {

// Never slower than gather and slice, and twice as fast, but where the bound leaves no room for it.
TEST(Choice, BeatsGatherAndSliceOnTwoNodes) {
  const Shipped shipped = reshard::shipped("two-dgx-h100");
  const sim::SimulatedCost cost(*shipped.cluster, shipped.communication);
  for (const Case& one : named_cases()) {
    SCOPED_TRACE(one.name);
    const auto choice = choose(one.tensor, one.from, one.to, cost, {.cluster = &*shipped.cluster});
    ASSERT_TRUE(choice) << choice.error().message;
    ASSERT_TRUE(choice->baseline);
    const Alternative& gather = choice->alternatives[*choice->baseline];
    ASSERT_TRUE(gather.simulated);
    ASSERT_TRUE(choice->best().simulated);
    EXPECT_LE(*choice->best().simulated, *gather.simulated);
    EXPECT_GE(*choice->best().simulated, choice->bound.time);
    const double ratio = *gather.simulated / *choice->best().simulated;
    const double possible = *gather.simulated / choice->bound.time;
    if (possible >= one.ratio) {
      EXPECT_GE(ratio, one.ratio) << choice->best().plan.name << "; the bound allows " << possible;
    }
  }
}

// A plan is compared or rejected, not both, and no two that are compared have one name.
TEST(Choice, NamesEveryPlanOnce) {
  const Shipped shipped = reshard::shipped("two-dgx-h100");
  const sim::SimulatedCost cost(*shipped.cluster, shipped.communication);
  const auto expect_once = [&](const TensorSpec& tensor, const char* from, const char* to) {
    const auto choice =
        value_of(choose(tensor, *parse_layout(from, tensor.shape), *parse_layout(to, tensor.shape),
                        cost, {.cluster = &*shipped.cluster}));
    std::vector<std::string> names;
    for (const Alternative& one : choice.alternatives) names.push_back(one.plan.name);
    for (const auto& one : choice.rejected) names.push_back(one.name);
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << testing::PrintToString(names);
  };
  // Gather and slice takes more than three times as long as the best.
  expect_once({.dtype = DType::kBf16, .shape = {8192, 53248}}, "x=16 [x, -]", "x=16 [-, x]");
  // Gather and slice copies all to each rank, the candidate of the same steps a slice.
  expect_once({.dtype = DType::kBf16, .shape = {64}}, "@7 [-]", "x=8 @2-4,7-10,15 [-] sum(x)");
}

// Every plan that is offered is a Program that verifies, and none beats the bound.
TEST(Choice, OffersProgramsThatRun) {
  const Shipped shipped = reshard::shipped("two-dgx-h100");
  const Placement placement{.cluster = &*shipped.cluster};
  const sim::SimulatedCost cost(*shipped.cluster, shipped.communication);
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const Case one = random_case(random, 16);
    SCOPED_TRACE("case " + std::to_string(i) + ": " + describe(one.from) + " to " +
                 describe(one.to));
    const auto choice =
        value_of(choose(one.tensor, one.from, one.to, cost, placement, {.keep = 6, .simulate = 6}));
    for (const Alternative& alternative : choice.alternatives) {
      if (!(alternative.plan.estimate > 0_s)) continue;
      const auto program = value_of(program_of(alternative.plan, one.tensor, placement));
      const auto fault = program::verify(program);
      ASSERT_TRUE(fault.ok()) << alternative.plan.name << ": " << fault.error().message;
      if (alternative.simulated) {
        EXPECT_GE(alternative.simulated->in_base(), choice.bound.time.in_base() * (1 - 1e-9))
            << alternative.plan.name;
      }
    }
  }
}

double relative(Seconds a, Seconds b) {
  return std::abs(a / b - 1);
}

// Folding changes nothing; message by message both engines say the same.
TEST(Choice, RunsAlikeFoldedAndOnBothEngines) {
  const Shipped shipped = reshard::shipped("two-dgx-h100");
  const Placement placement{.cluster = &*shipped.cluster};
  const sim::SimulatedCost cost(*shipped.cluster, shipped.communication);
  comm::Parameters plain = comm::ideal_parameters();
  std::erase_if(plain.forms, [](const comm::FormParameters& form) {
    return form.algorithm.find("nvls") != std::string::npos;  // has no stepwise form
  });
  for (const Case& one : named_cases()) {
    SCOPED_TRACE(one.name);
    const auto choice = value_of(choose(one.tensor, one.from, one.to, cost, placement));
    for (std::size_t i = 0; i < std::min<std::size_t>(3, choice.alternatives.size()); ++i) {
      const Plan& plan = choice.alternatives[i].plan;
      SCOPED_TRACE(plan.name);
      const auto program = value_of(program_of(plan, one.tensor, placement));
      const auto step = [&](const sim::SimulateOptions& options) {
        return value_of(sim::simulate(*shipped.cluster, program, plain, options)).step;
      };
      EXPECT_LT(relative(step({}), step({.fold = false})), 1e-9);
      const auto stepwise = sim::Granularity::kStepwise;
      EXPECT_LT(relative(step({.granularity = stepwise}),
                         step({.engine = sim::EngineKind::kSimgrid, .granularity = stepwise})),
                1e-6);
    }
  }
}

// Same input, same bytes out.
TEST(Choice, ReadsTheSameTwice) {
  const Shipped shipped = reshard::shipped("two-dgx-h100");
  const Case one = named_cases()[4];
  const auto text = [&] {
    const sim::SimulatedCost cost(*shipped.cluster, shipped.communication);
    return to_json(*explain(one.tensor, one.from, one.to, cost, {.cluster = &*shipped.cluster}));
  };
  const std::string first = text();
  EXPECT_EQ(first, text());
  const auto json = nlohmann::json::parse(first);
  EXPECT_EQ(json["schema"], "foreshard.reshard/1");
  EXPECT_EQ(json["tensor"]["bytes"], 8192LL * 53248 * 2);
  EXPECT_GT(json["plan"]["time_s"], 0);
  EXPECT_FALSE(json["links"].empty());
  EXPECT_GE(json["links"][0]["busy_s"], json["links"][1]["busy_s"]);
}

std::string fault(const Layout& from, const Layout& to) {
  const Shipped shipped = reshard::shipped("two-dgx-h100");
  const sim::SimulatedCost cost(*shipped.cluster, shipped.communication);
  const TensorSpec tensor{.dtype = DType::kBf16, .shape = {8, 6}};
  return message_of(choose(tensor, from, to, cost, {.cluster = &*shipped.cluster}));
}

TEST(Choice, NamesWhatIsWrong) {
  const Layout rows{.mesh = mesh_from({{"x", 4}}), .attribute = {.dims = {{0}, {}}}};
  Layout far = rows;
  far.mesh = mesh_from({{"x", 4}}, 13);
  EXPECT_THAT(fault(rows, far), HasSubstr("to: rank 16 is not in cluster 'two-dgx-h100', which "
                                          "has 16 devices: use ranks 0 to 15"));
  Layout columns = rows;
  columns.attribute.dims = {{}, {0}};
  EXPECT_THAT(fault(columns, rows), HasSubstr("from: "));
}

}  // namespace foreshard::reshard::choose_test
