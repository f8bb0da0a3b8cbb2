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
#include "strategies/graph/capture.h"
#include "strategies/graph/sharding.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/ir/program.h"
#include "strategies/program/lower/ring.h"
#include "strategies/reshard/mesh_planner.h"

namespace foreshard::lower {

/// What runs beside what.
struct Overlap {
  /// A conversion delays only the operators that need its result, and tensors that were saved
  /// earlier are converted while the operator before their user computes; else the next kernel
  /// waits for every conversion.
  bool conversions = false;
  /// A product runs beside the gathering of what it reads along the tensor-parallel ranks.
  /// Source: NVIDIA/TransformerEngine, transformer_engine/common/comm_gemm_overlap (ring exchange).
  /// Not modelled: that it starts when the first part is there and is cut into as many, which fill
  /// the device less well; sums of what it writes, which user buffers bring beside it, too.
  bool products = false;
};

/// What the host does to launch tasks, in launches of plain kernels.
struct Launching {
  /// What CUDA graphs launch: the first of operators in a row that are captured alike is launched
  /// by the host as a plain kernel, and the others with it.
  std::vector<Capture> captured{};
  double product = 1;     ///< Framework::product_launches, of weights alone.
  double quantized = 1;   ///< Framework::quantized_product_launches.
  double of_several = 1;  ///< Framework::eager_launches.
};
Launching launching_of(const Strategy& strategy);

/// Writes operators of sharded graphs as tasks, in the order of the graphs given to it.
class Emitter {
 public:
  /// Conversions are carried out as `planner` says.
  Emitter(program::Block& block, Overlap overlap, Launching launching = {},
          reshard::MeshPlanner planner = reshard::steps_within)
      : block_(block),
        overlap_(overlap),
        launching_(std::move(launching)),
        planner_(std::move(planner)) {
    if (is_captured(Capture::kNone, launching_.captured)) open_ = Capture::kStep;
  }

  /// Emits all operators of `sharded`.
  void emit(const ShardedGraph& sharded);
  /// Emits the operators `selected` (indices, ascending).
  void emit(const ShardedGraph& sharded, const std::vector<std::size_t>& selected);
  /// The same. Conversions in `done` (of the same graph)
  /// were made in an earlier block; those made here are added.
  void emit(const ShardedGraph& sharded, const std::vector<std::size_t>& selected,
            std::set<std::int32_t>& done);
  /// Emits conversions alone, but for those in `done`.
  void convert(const ShardedGraph& sharded, const std::vector<std::int32_t>& conversions,
               std::set<std::int32_t>& done);

  /// The task after which a tensor made here can be used (of a view: the last kernel); nothing if
  /// there is no kernel yet.
  std::optional<std::int32_t> ready(TensorId tensor) const;

 private:
  // The task to wait for before the tensor is sent, if there is one.
  std::vector<std::int32_t> behind(TensorId tensor) const;
  void convert(const ShardedGraph& sharded, std::int32_t index);
  void kernel(const ShardedGraph& sharded, std::size_t index);
  void launch(const ShardedGraph& sharded, std::size_t index);
  // Marks the tasks from `first` on that a graph launches.
  void capture(std::size_t first);
  // Whether a task gathers along the tensor-parallel ranks.
  bool gathers(std::int32_t task) const;

  program::Block& block_;
  Overlap overlap_;
  Launching launching_;
  reshard::MeshPlanner planner_;
  std::optional<Capture> open_{};  // what the graph that was launched last has
  std::map<std::int32_t, std::optional<std::int32_t>> converted_;
  std::map<std::size_t, Ring> rings_;          // of the selected operators
  std::map<TensorId, std::int32_t> producer_;  // the task after which a tensor can be used
  std::int32_t last_kernel_ = -1;
  std::int32_t pending_ = -1;      // communication that the next kernel waits for without overlap
  std::set<std::int32_t> beside_;  // what runs beside the last kernel: the next one waits for it
};

}  // namespace foreshard::lower
