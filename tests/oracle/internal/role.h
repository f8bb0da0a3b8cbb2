/// \file
/// One role of a plan on all of its ranks: private to step.cc.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tests/oracle/internal/role_parameters.h"

#include "strategies/parallelism/layers.h"

namespace foreshard::execute {

/// A block of the model, sharded as lowering shards it. Its parts point at each other: it stays
/// where it is made.
struct ShardedBlock {
  Graph forward;
  ShardedGraph forward_sharded;
  Graph backward;
  ShardedGraph backward_sharded;
  std::set<TensorId> kept;  ///< Stay in memory between the two; views as what they view.
  std::vector<std::size_t> recomputed{};     ///< Operators of `forward`, ascending.
  std::map<TensorId, TensorId> gradient_of;  ///< Of each parameter that is trained.
  std::vector<bool> weights{};               ///< weight_gradient_operators() of the backward graph.
  std::map<TensorId, std::vector<Axis>>
      also_partial{};  ///< Per parameter: besides those whose ranks hold copies.

  ShardedBlock() = default;
  ShardedBlock(const ShardedBlock&) = delete;
  ShardedBlock& operator=(const ShardedBlock&) = delete;
};

/// What every role needs to know.
struct Training {
  const Model& model;
  const Strategy& strategy;
  const plan::StepPlan& plan;
  const StepOptions& options;
  Axis pipeline = 0;
  std::vector<std::unique_ptr<ShardedBlock>> blocks{};  ///< By index of the plan's.
  Attribute sent{};                                     ///< How the boundary lies while it is.

  /// The streams between blocks: of a model with an encoder, the decoder's and the encoder's.
  std::vector<Tensor> streams() const {
    const Graph& layer = blocks[1]->forward;
    std::vector<Tensor> list;
    for (const TensorId id : layer.inputs) list.push_back(layer[id]);
    return list;
  }
  /// Of a model without one.
  Tensor boundary() const { return streams().front(); }
};

/// \return kInvalidInput where a tensor cannot be split as the strategy wants, or a gradient does
///     not lie as its parameter does.
Result<std::unique_ptr<ShardedBlock>> sharded_block(const Training& training, Graph graph,
                                                    const LayerVariant& variant);

class Role {
 public:
  Role(const Training& training, std::size_t role);

  /// \return why a graph cannot be run, or that what the pass wants to have been kept was not.
  Status pass(plan::ActionId id);
  /// What lies where the chunk's result is to lie, in pieces as it is sent.
  Arrays send(const plan::Action& action);
  void receive(const plan::Action& action, const Arrays& sent);

  RoleParameters& parameters() { return parameters_; }
  /// Losses per token: "loss.<micro-batch>".
  std::vector<Held>& losses() { return losses_; }
  double loss() const { return loss_; }  ///< Their sum.

 private:
  // A boundary of units as one slot of the schedule has it: chunk, unit behind it, micro-batch.
  using Boundary = std::tuple<std::int32_t, std::int32_t, std::int32_t, Direction>;

  const ShardedBlock& block_of(std::int32_t unit) const;
  GraphRun how(std::int32_t unit, std::int32_t micro_batch) const;
  Distributed tokens(std::int32_t unit, const std::string& tensor, std::int32_t micro_batch) const;
  Distributed data(std::int32_t unit, const std::string& tensor, std::int32_t micro_batch,
                   std::int64_t below) const;
  Status forward(const plan::Action& pass, std::int32_t unit);
  Status backward(const plan::Action& pass, std::int32_t unit);
  Status weight_gradients(const plan::Action& pass, std::int32_t unit);
  Status run_part(const ShardedBlock& block, GraphRun how, bool of_weights, Tensors& tensors);
  void accumulate(const ShardedBlock& block, std::int32_t unit, plan::PassPart part,
                  const Tensors& tensors);
  void keep_loss(const ShardedBlock& head, TensorId of, const Distributed& statistics,
                 std::int32_t micro_batch);
  Boundary boundary(const plan::Action& action, std::int32_t behind) const;
  Boundary end_of_chunk(const plan::Action& action, bool enters) const;
  std::vector<Distributed> take(const Boundary& boundary);
  std::int32_t chunk_before(const Boundary& boundary) const;

  const Training& training_;
  const plan::Role& role_;
  RoleParameters parameters_;
  std::map<Boundary, std::vector<Distributed>> boundaries_;        // by stream
  std::map<std::pair<std::int32_t, std::int32_t>, Tensors> kept_;  // by unit and micro-batch
  // What gradients of weights read, between the two parts of a backward pass.
  std::map<std::pair<std::int32_t, std::int32_t>, Tensors> held_;
  std::vector<Held> losses_;
  double loss_ = 0;
};

}  // namespace foreshard::execute
