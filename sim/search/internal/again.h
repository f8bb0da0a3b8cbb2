/// \file
/// What blocks need and take that are computed again in one of several ways, for all strategies
/// that split a layer alike, whatever their replicas, stages and order of ranks.
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

/// What blocks that may be computed again need at least.
class LeastBytes {
 public:
  LeastBytes(std::size_t blocks, std::vector<BlockBytes> all)
      : blocks_(blocks), all_(std::move(all)) {}

  /// By block, as Again has them: in that way or in none.
  std::span<const BlockBytes> of_way(std::size_t way) const {
    return std::span(all_).subspan(way * blocks_, blocks_);
  }
  /// In any way.
  std::span<const BlockBytes> of_any() const { return std::span(all_).last(blocks_); }

 private:
  std::size_t blocks_;
  std::vector<BlockBytes> all_;  // way by way, those of any behind
};

class Again {
 public:
  /// \param strategy  computes all layers again, and has the way to split a layer.
  /// \return as lower::lower_blocks.
  static Result<Again> of(const Model& model, const Strategy& strategy,
                          std::span<const Recomputation> ways);

  std::size_t blocks() const { return variants_.size() + predictions_; }
  std::size_t ways() const { return ways_; }
  /// Of each block of the strategy's plan, which of these blocks it is; -1: nothing of it is
  /// computed again. `variants`: the number of its layers' variants (Forms::variants_of).
  const std::array<std::int32_t, kBlocks>& indices(const Model& model, const Strategy& strategy,
                                                   std::int64_t variants);
  /// What passes keep, hold and work with, of a block in each way.
  std::span<const BlockBytes> bytes(std::size_t block) const {
    return std::span(bytes_).subspan(block * ways_, ways_);
  }
  /// \param base  computes nothing again.
  /// \param bytes  of the blocks of its plan.
  LeastBytes least_bytes(const Model& model, const Strategy& base,
                         const std::array<BlockBytes, kBlocks>& bytes) const;
  /// Of all blocks in each way, block by block, on devices of that set.
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
  std::vector<std::vector<Axis>> axes_;  // along which they communicate
  std::vector<Tasks> tasks_;
  std::vector<BlockBytes> bytes_;
  std::map<std::int64_t, std::array<std::int32_t, kBlocks>> indices_;
  // By the kinds of the groups that communicate, and the set of devices.
  std::map<std::pair<std::vector<std::int32_t>, std::int32_t>, std::vector<PassTimes>> times_;
};

}  // namespace foreshard::search
