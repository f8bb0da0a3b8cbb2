#include "sim/search/internal/memory.h"

#include <algorithm>

#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/resident.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::search {
namespace {

using lower::LoweredBlock;

// What is live while one pass of a chunk runs, on top of the passes before it.
class PassMemory {
 public:
  PassMemory(const Strategy& strategy, const lower::LoweredModel& blocks, bool one_table)
      : strategy_(strategy),
        states_(state_sharding(strategy)),
        blocks_(blocks),
        one_table_(one_table) {}

  // The next `count` blocks, in the order of the forward pass.
  void add(const LoweredBlock& block, std::int64_t count) {
    if (count == 0) return;
    const Bytes gradient = whole_gradient(block);
    // Backward, the block before it runs while its gradient is reduced - unless parameters are
    // gathered between the two, behind that on the same stream.
    if (before_ && !states_.cuts_parameters && !waits_for_kernels())
      peak_ = std::max(peak_, backward_before_ + gradient);
    saved_ += static_cast<double>(count) * block.saved;
    const Bytes whole = states_.cuts_parameters
                            ? size_of(strategy_.precision) * static_cast<double>(block.elements())
                            : Bytes{};
    // Beside the block that runs, the one that is gathered for the next.
    const bool next = states_.cuts_parameters && count > 1;
    const Shards& shards = strategy_.framework->shards;
    const Bytes ahead = next && shards.forward_prefetch != Prefetch::kNone ? whole : Bytes{};
    const Bytes ahead_back = next && shards.backward_prefetch != Prefetch::kNone ? whole : Bytes{};
    // Work of the pass that ran before is still held where its last task is not on the compute
    // stream: the next pass does not wait for it.
    const bool follows = count > 1 && trails(block.forward);
    peak_ = std::max(peak_, saved_ + whole + ahead + block.transient_forward +
                                (follows ? block.transient_forward : Bytes{}));
    // A table that is the output projection too has its whole gradient since the head's pass.
    const bool table = one_table_ && &block != &blocks_.embedding;
    backward_before_ = saved_ + whole + gradient + block.transient_backward +
                       (table ? whole_gradient(blocks_.embedding) : Bytes{});
    // While the second of such blocks runs, the gradient of the first is reduced; what that had
    // kept is gone. Gathered is the next one behind the reduction, on the same stream.
    peak_ = std::max(peak_, backward_before_ + ahead_back);
    if (count > 1 && !waits_for_kernels() && (!states_.cuts_parameters || ahead_back > 0_B))
      peak_ = std::max(peak_, backward_before_ - block.saved + gradient);
    if (!states_.cuts_gradients) add_trailing(block, count);
    before_ = &block;
  }
  Bytes saved() const { return saved_; }
  Bytes peak() const { return peak_; }

 private:
  // The host launches a pass when all of the pass before is done.
  bool waits_for_passes() const {
    return strategy_.framework->pass_host_sync && strategy_.virtual_stages == 1;
  }
  // The host launches a kernel when all before it is done.
  bool waits_for_kernels() const { return strategy_.framework->blocking_launches; }

  Bytes whole_gradient(const LoweredBlock& block) const {
    if (!states_.cuts_gradients) return {};
    const bool shared = one_table_ && &block == &blocks_.head;
    return size_of(strategy_.framework->gradients_of(strategy_.precision)) *
           static_cast<double>(block.elements() - (shared ? block.largest_parameter : 0));
  }

  // Where gradients are shared, a backward pass waits for all of the pass before.
  void add_trailing(const LoweredBlock& block, std::int64_t count) {
    const Bytes here = saved_ + block.transient_backward;
    if (trails(block.backward)) {
      if (count > 1) peak_ = std::max(peak_, here + block.transient_backward);
      // Backward, the block before runs next.
      if (before_) peak_ = std::max(peak_, here + before_->transient_backward);
    }
    // A forward pass is followed by a backward one: behind the head its own.
    if (trails(block.forward) && !waits_for_passes())
      peak_ = std::max(peak_, here + block.transient_forward);
  }

  bool trails(const program::Block& block) const {
    return !block.tasks.empty() && !waits_for_kernels() &&
           block.tasks.back().stream != lower::stream(lower::kComputeStream);
  }

  const Strategy& strategy_;
  StateSharding states_;
  const lower::LoweredModel& blocks_;
  bool one_table_;
  Bytes saved_;
  Bytes peak_;
  const LoweredBlock* before_ = nullptr;
  Bytes backward_before_;  // while its backward pass runs
};

}  // namespace

Result<std::vector<std::vector<KeptPasses>>> kept_passes(const Strategy& strategy) {
  std::vector<std::vector<KeptPasses>> result;
  const auto stages = static_cast<std::int32_t>(strategy.pipeline_parallel);
  const auto chunks = static_cast<std::int32_t>(strategy.virtual_stages);
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    const auto slots = schedule::order(
        strategy.schedule, {.stage = stage,
                            .stages = stages,
                            .chunks = chunks,
                            .micro_batches = static_cast<std::int32_t>(strategy.micro_batches())});
    if (!slots) return slots.error();
    KeptPasses now;
    std::vector<KeptPasses> most(static_cast<std::size_t>(chunks));
    const auto count = [&](std::int32_t chunk, std::int64_t change) {
      now.all += change;
      if (chunk == 0) now.first_chunk += change;
      if (chunk == chunks - 1) now.last_chunk += change;
    };
    for (const schedule::Slot& slot : *slots) {
      if (slot.direction == Direction::kForward) count(slot.chunk, 1);
      KeptPasses& chunk = most[static_cast<std::size_t>(slot.chunk)];
      if (now.all > chunk.all) chunk = now;
      if (now.all == chunk.all) {
        chunk.first_chunk = std::max(chunk.first_chunk, now.first_chunk);
        chunk.last_chunk = std::max(chunk.last_chunk, now.last_chunk);
      }
      if (slot.direction == Direction::kBackward) count(slot.chunk, -1);
    }
    result.push_back(std::move(most));
  }
  return result;
}

Bytes peak_of_stage(const Strategy& strategy, const Model& model, const lower::LoweredModel& blocks,
                    std::int64_t stage, const std::vector<KeptPasses>& kept) {
  Bytes fixed;
  for (const auto& one : lower::resident_memory(strategy, model, blocks, stage)) fixed += one.bytes;

  const auto split = layers_of_stages(strategy, model);
  const std::int64_t pipeline = strategy.pipeline_parallel;
  Bytes most;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk) {
    const bool last_stage = stage == pipeline - 1;
    const std::int64_t layers = split[static_cast<std::size_t>(chunk * pipeline + stage)];
    PassMemory pass(strategy, blocks, model.tied_embeddings && strategy.stages() == 1);
    if (stage == 0 && chunk == 0) pass.add(blocks.embedding, 1);
    pass.add(blocks.layer, layers);
    if (last_stage && chunk == strategy.virtual_stages - 1) pass.add(blocks.head, 1);
    const KeptPasses& passes = kept[static_cast<std::size_t>(chunk)];
    Bytes activations = static_cast<double>(passes.all * layers) * blocks.layer.saved;
    if (stage == 0) activations += static_cast<double>(passes.first_chunk) * blocks.embedding.saved;
    if (last_stage) activations += static_cast<double>(passes.last_chunk) * blocks.head.saved;
    most = std::max(most, activations + pass.peak() - pass.saved());
  }
  return fixed + most;
}

}  // namespace foreshard::search
