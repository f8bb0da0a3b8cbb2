/// \file
/// A report made by hand, with round numbers: two stages of four ranks each, one step of 10 s.
#pragma once

#include "sim/report/report.h"

namespace foreshard::report {

inline program::Program example_program() {
  program::Program program;
  program.name = "example";
  program.mesh = {{"tensor", 4}, {"pipeline", 2}};
  program.streams = {{"compute"}, {"tensor"}};
  program::Block layer{.name = "layer forward", .tasks = {}};
  layer.tasks.push_back({.name = "qkv",
                         .body = Kernel(Gemm{.m = 2048, .n = 3072, .k = 1024}),
                         .stream = program::StreamId{0}});
  layer.tasks.push_back({.name = "sum of partial outputs",
                         .body = program::Communication{},
                         .stream = program::StreamId{1}});
  program.blocks = {layer};
  return program;
}

inline sim::DeviceClass example_class(std::string role, std::int32_t rank, Bytes peak) {
  sim::DeviceClass one;
  one.role = std::move(role);
  one.representative = rank;
  one.count = 4;
  one.device = DeviceId{rank};
  one.finish = 10_s;
  one.breakdown = {.compute = 6_s,
                   .optimizer = 0.5_s,
                   .tensor = 1.5_s,
                   .context = 0_s,
                   .expert = 0_s,
                   .pipeline = 0.25_s,
                   .data = 0.5_s,
                   .host = 0.25_s,
                   .bubble = 1_s};
  one.memory = {.peak = peak, .peak_time = 4_s, .by_kind = {20_GB, 20_GB, 0_B, peak - 42_GB, 2_GB}};
  return one;
}

/// \param second  peak of the second stage; its device has 80 GB.
inline Report example_report(Bytes second = 60_GB) {
  Report report;
  report.subject = {.name = "example",
                    .description = "",
                    .model =
                        "GPT 1B: 8 layers, hidden 1,024, 16 heads, sequence 2,048, 1.00 B "
                        "parameters",
                    .cluster = "two-nodes: 2 x 4 A100-SXM-80GB, 8 devices, single-switch",
                    .strategy =
                        "tensor 4 x pipeline 2 x data 1, 1f1b, batch 64 in micro-batches "
                        "of 1, recompute none, bf16, generic"};
  sim::Prediction& prediction = report.prediction;
  prediction.program = "example";
  prediction.cluster = "two-nodes";
  prediction.devices = 8;
  prediction.step = 10_s;
  prediction.low = 9_s;
  prediction.high = 11.5_s;
  prediction.samples = 64;
  prediction.tokens = 64 * 2048;
  prediction.model_tflops_per_device = 156;
  prediction.mfu = 0.5;
  prediction.classes = {example_class("stage 0", 0, 72_GB), example_class("stage 1", 4, second)};
  prediction.breakdown = prediction.classes[0].breakdown;
  prediction.worst_memory = second > 72_GB ? 1 : 0;
  prediction.memory_capacity = 80_GB;
  prediction.memory_reserve = 1_GB;
  prediction.fits = second <= 80_GB;
  const auto part = [](std::int32_t task, std::int32_t layer, Seconds start, Seconds finish) {
    return sim::CriticalTask{.device_class = 0,
                             .block = 0,
                             .task = task,
                             .layer = layer,
                             .micro_batch = 0,
                             .start = start,
                             .finish = finish};
  };
  prediction.critical_path = {part(0, 0, 0_s, 4_s), part(1, 0, 4_s, 5_s), part(0, 1, 5_s, 8_s)};
  prediction.critical_uses = {{.group = ParameterGroup::kProducts,
                               .device = "A100-SXM-80GB",
                               .evidence = yaml::Evidence::kFitted,
                               .time = 7_s},
                              {.group = ParameterGroup::kCommunication,
                               .device = "A100-SXM-80GB",
                               .evidence = yaml::Evidence::kTransferred,
                               .time = 1_s}};
  prediction.interval_source = {.text =
                                    "8 of 10 of 42 measured steps with generic; widened for "
                                    "communication of A100-SXM-80GB (a relative's, 10 % of "
                                    "the step)",
                                .framework = "generic",
                                .measurements = 42,
                                .low = 0.92,
                                .high = 1.13,
                                .widened_low = 0.95,
                                .widened_high = 1.06};
  prediction.collectives = {{.what = "all_reduce over tensor, 4 ranks",
                             .algorithm = "ring",
                             .protocol = "LL128",
                             .bytes = 8_MB,
                             .operations = 2048,
                             .idle_time = 75_us}};
  prediction.expense.energy = 9_kWh;
  prediction.expense.parts = {
      .devices = 6_kWh, .hosts = 0.9_kWh, .network = 0.3_kWh, .other = {}, .cooling = 1.8_kWh};
  prediction.expense.rent = 0.0444_USD;
  prediction.expense.pue = 1.25;
  prediction.expense.unused = 8;
  prediction.tasks = 12345;
  prediction.total_tasks = 49380;
  prediction.events = 20000;
  prediction.warnings = {{.code = "evidence",
                          .message = "attention of this device is known from another one only; "
                                     "replay a step to measure it."}};
  report.capacities = {80_GB, 80_GB};
  report.critical = critical_shares(prediction, example_program());
  report.inputs = {{"study.yaml", std::string(64, 'a')}};
  return report;
}

}  // namespace foreshard::report
