#include "strategies/search/memory.h"

#include <algorithm>

#include "strategies/schedule/schedule.h"

namespace foreshard::search {
namespace {

using lower::LoweredBlock;

// What is live while one pass of a chunk runs, on top of the passes before it.
class PassMemory {
 public:
  explicit PassMemory(const Strategy& strategy) : strategy_(strategy) {}

  // The next `count` blocks, in the order of the forward pass.
  void add(const LoweredBlock& block, std::int64_t count) {
    if (count == 0) return;
    saved_ += static_cast<double>(count) * block.saved;
    // Beside the block that runs, the one that is gathered for the next.
    const Shards& shards = strategy_.framework->shards;
    const bool ahead = count > 1 && (shards.forward_prefetch != Prefetch::kNone ||
                                     shards.backward_prefetch != Prefetch::kNone);
    Bytes whole;
    const bool gathers = strategy_.zero_stage == 3 && strategy_.data_parallel > 1;
    if (gathers)
      whole = (ahead ? 2.0 : 1.0) *
              (size_of(strategy_.precision) * static_cast<double>(block.elements()));
    // Work of the pass that ran before is still held where its last task is not on the compute
    // stream: the next pass does not wait for it.
    const Bytes held_forward =
        count > 1 && trails(block.forward) ? block.transient_forward : Bytes{};
    const Bytes held_backward =
        count > 1 && trails(block.backward) ? block.transient_backward : Bytes{};
    peak_ = std::max(peak_, saved_ + whole +
                                std::max(block.transient_forward + held_forward,
                                         block.transient_backward + held_backward));
    // A forward pass is followed by a backward one: behind the head its own. Where parameters are
    // gathered for it, that waits for all of the pass before.
    if (!gathers && trails(block.forward))
      peak_ = std::max(peak_, saved_ + block.transient_forward + block.transient_backward);
    // Backward, the block before runs next.
    if (!gathers && before_ && trails(block.backward))
      peak_ = std::max(peak_, saved_ + block.transient_backward + before_->transient_backward);
    before_ = &block;
  }
  Bytes saved() const { return saved_; }
  Bytes peak() const { return peak_; }

 private:
  static bool trails(const program::Block& block) {
    return !block.tasks.empty() &&
           block.tasks.back().stream != lower::stream(lower::kComputeStream);
  }

  const Strategy& strategy_;
  Bytes saved_;
  Bytes peak_;
  const LoweredBlock* before_ = nullptr;
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

std::int64_t parameters_of(const Strategy& strategy, const Model& model,
                           const lower::LoweredModel& blocks, std::int64_t stage) {
  const auto split = layers_of_stages(strategy, model);
  const bool first = stage == 0;
  const bool last = stage == strategy.pipeline_parallel - 1;
  std::int64_t elements = 0;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    elements += split[static_cast<std::size_t>(chunk * strategy.pipeline_parallel + stage)] *
                blocks.layer.elements();
  if (first) elements += blocks.embedding.elements();
  if (last) elements += blocks.head.elements();
  // One stage alone has a tied output projection once.
  if (model.tied_embeddings && strategy.stages() == 1) elements -= blocks.head.largest_parameter;
  return elements;
}

Bytes peak_of_stage(const Strategy& strategy, const Model& model, const lower::LoweredModel& blocks,
                    std::int64_t stage, const std::vector<KeptPasses>& kept) {
  const auto count = static_cast<double>(parameters_of(strategy, model, blocks, stage));
  const auto part = [&](std::int64_t zero) {
    return strategy.zero_stage >= zero ? 1 / static_cast<double>(strategy.data_parallel) : 1.0;
  };
  const lower::ElementBytes bytes = lower::element_bytes(strategy);
  const Bytes fixed =
      bytes.parameter * (count * part(3)) +
      size_of(strategy.framework->gradients_of(strategy.precision)) * (count * part(2)) +
      bytes.optimizer * (count * part(1));

  const auto split = layers_of_stages(strategy, model);
  const std::int64_t pipeline = strategy.pipeline_parallel;
  Bytes most;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk) {
    const bool last_stage = stage == pipeline - 1;
    const std::int64_t layers = split[static_cast<std::size_t>(chunk * pipeline + stage)];
    PassMemory pass(strategy);
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
