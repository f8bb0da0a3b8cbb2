/// \file
/// Memory and time of blocks under each of several choices of recomputation, for all strategies
/// that split a layer in the same way, whatever their replicas, stages and order of ranks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"

#include "sim/search/internal/layout.h"
#include "sim/search/internal/passes.h"
#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// Lower bounds of the bytes of blocks that may recompute.
class LeastBytes {
 public:
  LeastBytes(std::size_t blocks, std::vector<BlockBytes> all)
      : blocks_(blocks), all_(std::move(all)) {}

  /// One per block of Again: the lesser of its bytes with that recomputation and without any.
  std::span<const BlockBytes> of_way(std::size_t way) const {
    return std::span(all_).subspan(way * blocks_, blocks_);
  }
  /// One per block of Again: the least over all choices of recomputation, and none.
  std::span<const BlockBytes> of_any() const { return std::span(all_).last(blocks_); }

 private:
  std::size_t blocks_;
  std::vector<BlockBytes> all_;  // way by way, then the least of any
};

class Again {
 public:
  /// \param strategy  recomputes all layers, and has the split of a layer that is wanted.
  /// \return the errors of lower::lower_blocks.
  static Result<Again> of(const Model& model, const Strategy& strategy,
                          std::span<const Recomputation> ways);

  std::size_t blocks() const { return variants_.size() + predictions_; }
  std::size_t ways() const { return ways_; }
  /// block of the strategy's plan -> block of this; -1: it recomputes nothing. `variants`: the
  /// number that Forms::variants_of gives for the strategy.
  const std::array<std::int32_t, kBlocks>& indices(const Model& model, const Strategy& strategy,
                                                   std::int64_t variants);
  /// One per way: what passes through the block keep, hold and work with.
  std::span<const BlockBytes> bytes(std::size_t block) const {
    return std::span(bytes_).subspan(block * ways_, ways_);
  }
  /// \param base  a strategy without recomputation.
  /// \param bytes  one per block of the base's plan.
  LeastBytes least_bytes(const Model& model, const Strategy& base,
                         const std::array<BlockBytes, kBlocks>& bytes) const;
  /// Passes of all blocks with each recomputation, block by block, on devices of that set.
  /// \return kInfeasible where devices that communicate have no route.
  Result<std::span<const PassTimes>> passes(const Layout& layout, std::int32_t devices);

 private:
  struct Tasks {
    PassTasks forward;
    PassTasks backward;
    PassTasks input;
    PassTasks weight;
    bool is_split = false;
  };

  std::size_t ways_ = 0;
  std::vector<LayerVariant> variants_;
  std::size_t predictions_ = 0;
  std::vector<MeshAxis> mesh_;
  Works works_;
  std::vector<std::vector<Axis>> axes_;  // sets of axes along which tasks communicate
  std::vector<Tasks> tasks_;
  std::vector<BlockBytes> bytes_;
  std::map<std::int64_t, std::array<std::int32_t, kBlocks>> indices_;
  // Key: the kinds of the groups that communicate, and the set of device kinds.
  std::map<std::pair<std::vector<std::int32_t>, std::int32_t>, std::vector<PassTimes>> times_;
};

}  // namespace foreshard::search
