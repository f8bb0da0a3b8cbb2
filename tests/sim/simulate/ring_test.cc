// Attention whose keys go round a ring, as it is lowered: the longer one of kernels and transfers
// sets the pace.

#include "tests/sim/simulate/small.h"
#include "tests/strategies/graph/written_model.h"
#include "tests/test.h"

#include "sim/simulate/cost.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::sim::ring_test {

using program::Communication;
using program::Task;

constexpr std::int64_t kRanks = 4;

// The ring of a layer's pass alone, on ranks of its own.
program::Program ring_of(const std::string& pass) {
  const Model model = written_model(
      "name: long, layers: 1, hidden: 1024, heads: 8, vocabulary: 64, sequence: 16384, "
      "tied_embeddings: false, dropout: false");
  Strategy strategy;
  strategy.context_parallel = kRanks;
  strategy.context_exchange = ContextExchange::kRing;
  const auto lowered = value_of(lower::lower(model, strategy, {}));
  const auto block = std::ranges::find(lowered.blocks, pass, &program::Block::name);
  std::vector<Task> tasks;
  std::map<std::int32_t, std::int32_t> place;
  for (std::size_t t = 0; t < block->tasks.size(); ++t) {
    Task task = block->tasks[t];
    const bool is_own = task.name == "attention" || task.name == "d.attention" ||
                        task.name.starts_with("attention.") ||
                        task.name.starts_with("d.attention.") || task.name.starts_with("shift.");
    if (!is_own) continue;
    place[static_cast<std::int32_t>(t)] = static_cast<std::int32_t>(tasks.size());
    std::erase_if(task.after, [&](std::int32_t after) { return !place.contains(after); });
    for (std::int32_t& after : task.after) after = place.at(after);
    task.stream = std::holds_alternative<Communication>(task.body) ? kFirst : kCompute;
    if (auto* what = std::get_if<Communication>(&task.body))
      what->group = program::AxisGroup{.axes = {0}};
    tasks.push_back(std::move(task));
  }
  return every_rank(kRanks, tasks);
}

struct Work {
  Seconds kernels;
  Seconds transfers;
  std::vector<Seconds> each_kernel;
};
Work work_of(const program::Program& program, const ClusterView& cluster) {
  const comm::Parameters parameters = rings();
  const SimulatedCost cost(cluster, parameters);
  std::vector<DeviceId> devices;
  for (std::int64_t rank = 0; rank < kRanks; ++rank) devices.emplace_back(rank);
  Work work;
  for (const Task& task : program.blocks[0].tasks) {
    if (const auto* kernel = std::get_if<Kernel>(&task.body)) {
      work.each_kernel.push_back(cost.kernel_time(*kernel, DeviceTypeId(0)));
      work.kernels += work.each_kernel.back();
    } else {
      const auto& what = std::get<Communication>(task.body);
      work.transfers += *cost.communication_time(what.kind, what.bytes, devices);
    }
  }
  return work;
}

// Over fast links every transfer ends beside a kernel: the time is that of the kernels, which lack
// one of 100 multiprocessors meanwhile.
TEST(Ring, IsBoundByKernelsOverFastLinks) {
  const auto cluster = star(kRanks, 1_us, 1000_GB_s);
  for (const char* pass : {"layer.forward", "layer.backward"}) {
    const auto program = ring_of(pass);
    const Work work = work_of(program, cluster);
    EXPECT_LT(work.transfers, work.kernels);
    const Seconds step = run(cluster, program).step;
    EXPECT_GE(step, work.kernels);
    EXPECT_LE(step, work.kernels + work.transfers / 100);
  }
}

// Over slow links transfers follow each other. Forward the last step's kernel is left behind them,
// with the passes that merge all results; backward each sum is between two transfers, the copy of
// keys before them and the last sum behind.
TEST(Ring, IsBoundByTransfersOverSlowLinks) {
  const auto cluster = star(kRanks, 1_us, 10_MB_s);
  const auto forward = ring_of("layer.forward");
  Work work = work_of(forward, cluster);
  EXPECT_LT(10 * work.kernels, work.transfers);
  Seconds behind;
  for (std::size_t k = kRanks - 1; k < work.each_kernel.size(); ++k) behind += work.each_kernel[k];
  expect_time(run(cluster, forward).step, work.transfers + behind);

  const auto backward = ring_of("layer.backward");
  work = work_of(backward, cluster);
  Seconds sums;
  for (std::size_t k = 0; k < work.each_kernel.size(); k += 2) sums += work.each_kernel[k];
  expect_time(run(cluster, backward).step, work.transfers + sums);
}

// Between the two, what is not hidden is at most all of the lesser.
TEST(Ring, TakesNoLongerThanBothTogether) {
  Seconds last;
  for (const double gigabytes : {1000.0, 100.0, 10.0, 1.0, 0.1}) {
    const auto cluster = star(kRanks, 1_us, gigabytes * 1_GB_s);
    const auto program = ring_of("layer.forward");
    const Work work = work_of(program, cluster);
    const Seconds step = run(cluster, program).step;
    EXPECT_GE(step, std::max(work.kernels, work.transfers));
    EXPECT_LE(step, work.kernels + work.transfers);
    EXPECT_GE(step, last);
    last = step;
  }
}

}  // namespace foreshard::sim::ring_test
