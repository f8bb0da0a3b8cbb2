// Printed rates as step times, by the formulas that sources print.

#include "evidence/training.h"
#include "tests/test.h"

namespace foreshard::accuracy::conversion_test {

// A GPT of the SC 2021 paper: s = 2048, h = 6144, l = 40, V = 51200.
Model gpt() {
  Model model;
  model.layers = 40;
  model.hidden = 6144;
  model.heads = 48;
  model.vocabulary = 51200;
  model.sequence = 2048;
  return model;
}

TrainingRow row_of(std::string metric, double value, std::string unit, std::string source = "") {
  TrainingRow row;
  row.metric = std::move(metric);
  row.value = value;
  row.unit = std::move(unit);
  row.source = std::move(source);
  row.gbs = 1024;
  return row;
}

double seconds(const Result<Seconds>& time) {
  EXPECT_TRUE(time) << (time ? "" : time.error().message);
  return time ? *time / 1_s : -1;
}

constexpr double kB = 1024, kS = 2048, kL = 40, kH = 6144, kV = 51200;

// 96 B s l h^2 (1 + s / 6h + V / 16lh), and 135 TFLOP/s on 256 GPUs: the 9.40 s that follow from
// Table 1 of the paper.
TEST(Conversion, HardwareRateOfThePaper) {
  const double flops = 96 * kB * kS * kL * kH * kH * (1 + kS / (6 * kH) + kV / (16 * kL * kH));
  EXPECT_NEAR(step_flops(gpt(), kB, FlopsConvention::kHardware) / 1_FLOP, flops, 1e-9 * flops);
  const double time =
      seconds(measured_step(row_of("hardware_TFLOPS_per_GPU", 135, "TFLOP/s/GPU"), gpt(), 256));
  EXPECT_NEAR(time, flops / (135e12 * 256), 1e-9 * time);
  EXPECT_NEAR(time, 9.40, 0.005);
}

TEST(Conversion, ModelRateLeavesRecomputationOut) {
  const double flops = 72 * kB * kS * kL * kH * kH * (1 + kS / (6 * kH) + kV / (12 * kL * kH));
  EXPECT_NEAR(step_flops(gpt(), kB, FlopsConvention::kModel) / 1_FLOP, flops, 1e-9 * flops);
  const double time =
      seconds(measured_step(row_of("model_TFLOPS_per_GPU", 100, "TFLOP/s/GPU"), gpt(), 256));
  EXPECT_NEAR(time, flops / (100e12 * 256), 1e-9 * time);
}

// The causal mask halves 12 B s^2 h l.
TEST(Conversion, SourcesThatHalveAttention) {
  const double whole = 72 * kB * kS * kL * kH * kH * (1 + kS / (6 * kH) + kV / (12 * kL * kH));
  const double half = whole - 6 * kB * kS * kS * kH * kL;
  EXPECT_NEAR(step_flops(gpt(), kB, FlopsConvention::kCausalHalf) / 1_FLOP, half, 1e-9 * half);
  const auto row = row_of("model_TFLOPS_per_GPU", 100, "TFLOP/s/GPU", "stas00/ml-engineering");
  EXPECT_NEAR(seconds(measured_step(row, gpt(), 1)), half / 100e12, 1e-9 * half / 100e12);
}

TEST(Conversion, UtilisationIsOfThePeakThatTheUnitNames) {
  const double flops = step_flops(gpt(), kB, FlopsConvention::kModel) / 1_FLOP;
  const auto row = row_of("MFU", 50, "percent of 989.5 TFLOP/s");
  EXPECT_NEAR(seconds(measured_step(row, gpt(), 8)), flops / (0.5 * 989.5e12 * 8), 1e-6);
}

TEST(Conversion, TimesAndRates) {
  EXPECT_DOUBLE_EQ(seconds(measured_step(row_of("step_time", 250, "ms"), gpt(), 8)), 0.25);
  EXPECT_DOUBLE_EQ(seconds(measured_step(row_of("step_time", 2.5, "s"), gpt(), 8)), 2.5);
  // 1,024 sequences of 2,048 tokens.
  EXPECT_NEAR(seconds(measured_step(row_of("tokens/s/GPU", 4096, "tokens/card/s"), gpt(), 8)), 64,
              1e-9);
  EXPECT_NEAR(seconds(measured_step(row_of("tokens/s", 32768, "tokens/s"), gpt(), 8)), 64, 1e-9);
  EXPECT_NEAR(seconds(measured_step(row_of("samples/s", 16, "samples/s (global)"), gpt(), 8)), 64,
              1e-9);
  EXPECT_NEAR(seconds(measured_step(row_of("samples/s/GPU", 2, "samples/s/GPU"), gpt(), 8)), 64,
              1e-9);
}

TEST(Conversion, WhatIsNoWholeStep) {
  EXPECT_THAT(error_of(measured_step(row_of("layer_forward", 7, "ms"), gpt(), 8)),
              Fails(Error::Code::kUnsupported, HasSubstr("'layer_forward'")));
  EXPECT_THAT(message_of(measured_step(row_of("step_time", 7, "hours"), gpt(), 8)),
              HasSubstr("'hours'"));
  EXPECT_FALSE(measured_step(row_of("MFU", 50, "percent"), gpt(), 8));
}

TEST(Conversion, NotedStepTime) {
  TrainingRow row;
  row.notes = "printed MFU 41%; derived step_time=9.399s; more";
  EXPECT_DOUBLE_EQ(*noted_step(row) / 1_s, 9.399);
  row.notes = "nothing";
  EXPECT_FALSE(noted_step(row));
}

}  // namespace foreshard::accuracy::conversion_test
