/// \file
/// One pipeline stage of a step on all of its ranks: private to step.cc.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"

#include "strategies/execute/internal/stage_parameters.h"
#include "strategies/graph/backward.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::execute {

/// A block of the model, sharded as lowering shards it. Its parts point at each other: it stays
/// where it is made.
struct ShardedBlock {
  Graph forward;
  ShardedGraph forward_sharded;
  Graph backward;
  ShardedGraph backward_sharded;
  std::set<TensorId> kept;  ///< Stay in memory between the two; views as what they view.
  Recompute recompute = Recompute::kNone;
  std::map<TensorId, TensorId> gradient_of;              ///< Of each parameter.
  std::map<TensorId, std::vector<Axis>> also_partial{};  ///< Per parameter: besides data.

  ShardedBlock() = default;
  ShardedBlock(const ShardedBlock&) = delete;
  ShardedBlock& operator=(const ShardedBlock&) = delete;
};

/// \return kInvalidInput where a tensor cannot be split as the strategy wants, or a gradient does
///     not lie as its parameter does.
Result<std::unique_ptr<ShardedBlock>> sharded_block(Graph graph, const Strategy& strategy,
                                                    const std::vector<MeshAxis>& mesh,
                                                    const TrainingAxes& axes, Recompute recompute);

/// What every stage needs to know.
struct Training {
  const Model& model;
  const Strategy& strategy;
  const StepOptions& options;
  std::vector<MeshAxis> mesh{};
  TrainingAxes axes{};
  std::unique_ptr<ShardedBlock> embedding{};
  std::unique_ptr<ShardedBlock> layer{};
  std::unique_ptr<ShardedBlock> head{};
  std::vector<std::int64_t> layers_of_piece{};  ///< Chunk-major.

  const Tensor& boundary() const { return layer->forward[layer->forward.inputs.front()]; }
  std::int64_t pieces() const { return static_cast<std::int64_t>(layers_of_piece.size()); }
};

/// Boundary tensors on their way: by the piece that they go to, micro-batch and direction.
using Mail = std::map<std::tuple<std::int64_t, std::int32_t, Direction>, Shards<double>>;

class Stage {
 public:
  /// \pre `slots` is the schedule's order for this stage.
  Stage(const Training& training, std::int64_t stage, std::vector<schedule::Slot> slots);

  /// Runs slots for as long as what they need has arrived.
  /// \return whether any was run.
  Result<bool> advance(Mail& mail);
  bool done() const { return next_ == slots_.size(); }
  /// The reductions that follow the last pass, up to the tied table's.
  void finish_gradients();

  StageParameters& parameters() { return parameters_; }
  /// Losses per token: "loss.<micro-batch>".
  std::vector<Held>& losses() { return losses_; }

 private:
  using Error = foreshard::Error;

  std::int64_t piece(const schedule::Slot& slot) const;
  std::int64_t first_layer(std::int64_t piece) const;
  const Unit& unit(const std::string& name) const;
  void add_unit(const std::string& name, const ShardedBlock& block);
  GraphRun how(std::int64_t layer, std::int32_t micro_batch) const;
  Distributed tokens(const ShardedBlock& block, const std::string& tensor,
                     std::int32_t micro_batch) const;
  std::optional<Error> forward(const schedule::Slot& slot, Mail& mail);
  std::optional<Error> backward(const schedule::Slot& slot, Mail& mail);
  std::optional<Error> forward_pass(const ShardedBlock& block, const std::string& name,
                                    std::int64_t layer, std::int32_t micro_batch,
                                    Distributed& stream);
  std::optional<Error> backward_pass(const ShardedBlock& block, const std::string& name,
                                     std::int64_t layer, const schedule::Slot& slot,
                                     Distributed& stream);
  void keep_loss(const Distributed& statistics, std::int32_t micro_batch);
  void send(std::int64_t to, const schedule::Slot& slot, const Distributed& stream, Mail& mail);
  Distributed receive(const schedule::Slot& slot, Mail& mail);
  void reduce_after(const Unit& unit, const schedule::Slot& slot);

  const Training& training_;
  std::int64_t stage_;
  std::vector<schedule::Slot> slots_;
  std::size_t next_ = 0;
  StageParameters parameters_;
  std::map<std::string, Unit> units_;
  std::map<std::int32_t, std::int32_t> last_backward_;  // by chunk: its last micro-batch
  std::map<std::pair<std::string, std::int32_t>, Tensors> saved_;
  std::vector<Held> losses_;
};

}  // namespace foreshard::execute
