/// \file
/// From operators of a sharded graph to the tasks of a block. Kernels go to the compute stream in
/// order; conversions become communication beside them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/part.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/ir/program.h"
#include "strategies/program/lower/ring.h"
#include "strategies/reshard/within_mesh.h"

namespace foreshard::lower {

/// What may run at the same time.
struct Overlap {
  /// If true, a conversion delays only the operators that need its result, and a tensor that was
  /// saved earlier is converted while the operator before its reader computes. If false, the next
  /// kernel waits for every conversion.
  bool conversions = false;
  /// A product runs beside the gather, along the tensor-parallel ranks, of what it reads.
  /// Source: NVIDIA/TransformerEngine, transformer_engine/common/comm_gemm_overlap (ring exchange).
  /// Not modelled: that the product starts when the first part has arrived and is cut into as many
  /// products as parts, which fill the device less well; that sums of what a product writes run
  /// beside it too, with user buffers.
  bool products = false;
};

/// The host's work to launch tasks, as a multiple of the launch of a plain kernel.
struct LaunchCost {
  /// What CUDA graphs launch. Among consecutive operators with the same capture, the host launches
  /// the first as a plain kernel, and the others are launched with it.
  std::vector<Capture> captured{};
  double product = 1;     ///< Framework::product_launches, only for products with weights.
  double quantized = 1;   ///< Framework::quantized_product_launches.
  double of_several = 1;  ///< Framework::eager_launches.
};
LaunchCost launch_cost_of(const Strategy& strategy);

/// Writes operators of sharded graphs as tasks, in the order of the graphs given to it.
class Emitter {
 public:
  /// `planner` decides which primitives carry out a conversion.
  Emitter(program::Block& block, Overlap overlap, LaunchCost launching = {},
          reshard::MeshPlanner planner = reshard::steps_within)
      : block_(block),
        overlap_(overlap),
        launching_(std::move(launching)),
        planner_(std::move(planner)) {
    if (is_captured(Capture::kNone, launching_.captured)) open_ = Capture::kStep;
  }

  /// Emits the operators `selected` (indices, ascending). `done` has the conversions of this graph
  /// that earlier blocks made; the conversions made here are added to it.
  void emit(const ShardedGraph& sharded, const std::vector<std::size_t>& selected,
            std::set<std::int32_t>& done);
  /// Emits only `conversions`, except those in `done`.
  void convert(const ShardedGraph& sharded, const std::vector<std::int32_t>& conversions,
               std::set<std::int32_t>& done);

  /// The task after which a tensor made here can be used (for a view: the last kernel); nothing if
  /// there is no kernel yet.
  std::optional<std::int32_t> ready(TensorId tensor) const;

 private:
  // The task to wait for before the tensor is sent, if there is one.
  std::vector<std::int32_t> behind(TensorId tensor) const;
  void convert(const ShardedGraph& sharded, std::int32_t index);
  void kernel(const ShardedGraph& sharded, std::size_t index);
  void launch(const ShardedGraph& sharded, std::size_t index);
  // Marks the tasks, from `first` on, that a CUDA graph launches.
  void capture(std::size_t first);
  // Whether a task gathers along the tensor-parallel ranks.
  bool gathers(std::int32_t task) const;

  program::Block& block_;
  Overlap overlap_;
  LaunchCost launching_;
  reshard::MeshPlanner planner_;
  std::optional<Capture> open_{};  // what the CUDA graph launched last has captured
  std::map<std::int32_t, std::optional<std::int32_t>> converted_;
  std::map<std::size_t, Ring> rings_;          // selected operator -> its ring
  std::map<TensorId, std::int32_t> producer_;  // the task after which a tensor can be used
  std::int32_t last_kernel_ = -1;
  std::int32_t pending_ = -1;      // communication that the next kernel waits for without overlap
  std::set<std::int32_t> beside_;  // what runs beside the last kernel: the next one waits for it
};

}  // namespace foreshard::lower
