#include "validate/profile/kineto.h"

#include "tests/test.h"
#include "tests/validate/profile/small_trace.h"

namespace foreshard::profile {
namespace {

TEST(Trace, HoldsWhatRanAndWhatLaunchedIt) {
  const auto trace = value_of(read_trace(kSmallTrace, "t.json"));
  EXPECT_EQ(trace.device, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(trace.rank, 0);
  EXPECT_EQ(trace.ranks, 2);
  ASSERT_EQ(trace.kernels.size(), 6U);
  EXPECT_NEAR(trace.gpu_time() / 1_us, 10 + 2 + 3 + 20 + 12 + 3, 1e-6);
  EXPECT_EQ(trace.calls.size(), 5U);
  const TracedKernel& product = trace.kernels[0];
  EXPECT_EQ(product.name, "nvjet_tst_128x64");
  EXPECT_NEAR(product.start / 1_us, 20, 1e-6);  // since the first operator
  EXPECT_NEAR(product.launched / 1_us, 10, 1e-6);
  ASSERT_GE(product.range, 0);
  const HostRange& inner = trace.ranges[static_cast<std::size_t>(product.range)];
  EXPECT_EQ(inner.name, "aten::mm");
  ASSERT_GE(inner.parent, 0);
  EXPECT_EQ(trace.ranges[static_cast<std::size_t>(inner.parent)].name, "aten::linear");
  EXPECT_LT(trace.kernels[1].range, 0);  // launched outside of any operator
  EXPECT_LT(trace.kernels[5].range, 0);  // its launch was not recorded
}

// 2 x 64 tokens of 256 times 256 x 512.
TEST(Trace, TellsShapesOfProducts) {
  const auto trace = value_of(read_trace(kSmallTrace, "t.json"));
  EXPECT_EQ(product_shape(trace, trace.kernels[0]),
            (ProductShape{.batch = 1, .m = 128, .n = 512, .k = 256}));
  EXPECT_FALSE(product_shape(trace, trace.kernels[1]));
  EXPECT_FALSE(product_shape(trace, trace.kernels[4]));  // shapes were not recorded
}

TEST(Trace, TellsSizesOfCollectives) {
  const auto trace = value_of(read_trace(kSmallTrace, "t.json"));
  const auto& collective = trace.kernels[3].collective;
  ASSERT_TRUE(collective);
  EXPECT_EQ(collective->ranks, 2);
  EXPECT_EQ(collective_kinds(*collective), std::vector{program::CollectiveKind::kAllReduce});
  EXPECT_EQ(collective_bytes(*collective, program::CollectiveKind::kAllReduce), 128_KiB);
}

// Older files are an array of events; times may be texts, categories begin with a capital.
TEST(Trace, ReadsOldForms) {
  const auto trace = value_of(read_trace(
      R"([{"ph": "X", "cat": "Kernel", "name": "k", "ts": "5.5", "dur": "1.25", "args": {}}])",
      "t.json"));
  ASSERT_EQ(trace.kernels.size(), 1U);
  EXPECT_NEAR(trace.kernels[0].lasted / 1_us, 1.25, 1e-9);
}

std::string trace_fault(const std::string& text) {
  return message_of(read_trace(text, "t.json"));
}

TEST(Trace, NamesTheFaultAndItsPlace) {
  EXPECT_THAT(trace_fault("no"), HasSubstr("t.json: no JSON"));
  EXPECT_THAT(trace_fault("7"), HasSubstr("t.json: is not a trace"));
  EXPECT_THAT(trace_fault("{}"), HasSubstr("has no events of a GPU"));
  EXPECT_THAT(
      trace_fault(R"({"traceEvents": [{"ph": "M"}, {"ph": "X", "cat": "kernel", "ts": 1}]})"),
      HasSubstr("t.json: traceEvents[1].dur: is missing"));
  EXPECT_THAT(
      trace_fault(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "ts": "a", "dur": 1}]})"),
      HasSubstr("traceEvents[0].ts: \"a\" is not a number"));
  EXPECT_THAT(trace_fault(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1, "dur": -1}]})"),
              HasSubstr("traceEvents[0].dur: is negative"));
}

}  // namespace
}  // namespace foreshard::profile
