#include "tests/sim/simulate/small.h"

#include "tests/test.h"

#include "strategies/program/ir/verify.h"
#include "topology/cluster_builder.h"

namespace foreshard::sim {
namespace {

using program::CollectiveKind;
using program::Program;
using program::StreamId;
using program::Task;

DeviceType plain_device() {
  DeviceType type;
  type.name = "plain";
  type.memory.value = 1_GB;
  type.memory_bandwidth.value = 1_TB_s;
  type.vector_peak.value = 1000_TFLOP_s;
  type.tensor_peak["bf16"].value = 100_TFLOP_s;
  type.multiprocessors.value = 100;
  type.efficiency.value.passes.streaming.value = 1;
  type.efficiency.value.attention.rates = {{.head_dim = 128, .forward = 1, .backward = 1}};
  type.efficiency.value.attention.sustained = 1;
  type.efficiency.value.attention.tile = 128;
  return type;
}

Task transfer(CollectiveKind kind, std::int32_t peer, Bytes bytes, StreamId stream,
              std::vector<std::int32_t> after) {
  return {.name = kind == CollectiveKind::kSend ? "send" : "receive",
          .body = program::Communication{.kind = kind,
                                         .group = program::AxisPeer{.axis = 0, .coordinate = peer},
                                         .bytes = bytes,
                                         .purpose = program::Purpose::kPipeline,
                                         .tag = "transfer"},
          .stream = stream,
          .after = std::move(after)};
}

Program empty(std::int64_t ranks) {
  return {.name = "tiny",
          .mesh = {{"rank", ranks}},
          .streams = {{"compute"}, {"first"}, {"second"}, {"third"}, {"fourth"}}};
}

}  // namespace

ClusterView star(std::int32_t devices, Seconds latency, BytesPerSecond bandwidth) {
  ClusterView::Builder builder("star");
  const auto type = builder.add_device_type(plain_device());
  const auto node = builder.add_node();
  const auto hub = builder.add_vertex(VertexKind::kNvSwitch, "hub", node);
  for (std::int32_t i = 0; i < devices; ++i) {
    const auto device = builder.add_device(type, "gpu" + std::to_string(i), node);
    builder.connect(builder.vertex_of(device), hub,
                    {.kind = LinkKind::kNvLink, .bandwidth = bandwidth, .latency = latency / 2});
  }
  return std::move(builder).build();
}

comm::Parameters rings() {
  comm::Parameters parameters = comm::ideal_parameters();
  std::erase_if(parameters.forms, [](const comm::FormParameters& form) {
    return form.algorithm.find("tree") != std::string::npos ||
           form.algorithm.find("nvls") != std::string::npos;
  });
  return parameters;
}

Task kernel(const std::string& name, std::int64_t elements, std::vector<std::int32_t> after) {
  return {.name = name,
          .body = Kernel{Pass{.kind = PassKind::kZero, .rows = elements, .dtype = DType::kFp32}},
          .stream = kCompute,
          .after = std::move(after)};
}

Task send(std::int32_t to, Bytes bytes, StreamId stream, std::vector<std::int32_t> after) {
  return transfer(CollectiveKind::kSend, to, bytes, stream, std::move(after));
}
Task receive(std::int32_t from, Bytes bytes, StreamId stream, std::vector<std::int32_t> after) {
  return transfer(CollectiveKind::kReceive, from, bytes, stream, std::move(after));
}
Task all_reduce(Bytes bytes, StreamId stream, std::vector<std::int32_t> after) {
  return {.name = "all_reduce",
          .body = program::Communication{.kind = CollectiveKind::kAllReduce,
                                         .group = program::AxisGroup{.axes = {0}},
                                         .bytes = bytes,
                                         .purpose = program::Purpose::kData},
          .stream = stream,
          .after = std::move(after)};
}

Program each_rank(const std::vector<std::vector<Task>>& tasks) {
  Program program = empty(static_cast<std::int64_t>(tasks.size()));
  for (std::size_t r = 0; r < tasks.size(); ++r) {
    const std::string name = "rank " + std::to_string(r);
    program.blocks.push_back({name, tasks[r]});
    program.roles.push_back({.name = name,
                             .ranks = {static_cast<std::int32_t>(r)},
                             .calls = {{.block = program::BlockId(static_cast<std::int64_t>(r))}},
                             .memory = {}});
  }
  return program;
}

Program every_rank(std::int64_t ranks, const std::vector<Task>& tasks) {
  Program program = empty(ranks);
  program.blocks.push_back({"all", tasks});
  program.roles.push_back(
      {.name = "all", .ranks = {}, .calls = {{.block = program::BlockId(0)}}, .memory = {}});
  for (std::int32_t r = 0; r < ranks; ++r) program.roles[0].ranks.push_back(r);
  return program;
}

Prediction run(const ClusterView& cluster, const Program& program, const SimulateOptions& options,
               const comm::Parameters& parameters) {
  const auto violation = program::verify(program);
  EXPECT_TRUE(violation.ok()) << violation.error().message;
  if (!violation.ok()) return {};
  return value_of(simulate(cluster, program, parameters, options));
}

void expect_time(Seconds actual, Seconds expected) {
  EXPECT_NEAR(actual / 1_us, expected / 1_us, 1e-9 * (expected / 1_us));
}

}  // namespace foreshard::sim
