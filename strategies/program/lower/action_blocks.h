/// \file
/// The blocks of all actions of a step but its passes, from what each action works on. Lowering
/// finds that in the plan (plan_blocks.cc). The search, where one plan stands for many strategies,
/// finds it in the layout of each (sim/search/internal/layout.h), and times the same blocks.
///
/// A new kind of action: its row in plan::ActionKind, its planner, and a case of
/// ActionBlocks::make().
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "strategies/parallelism/strategy.h"
#include "strategies/plan/step_plan.h"
#include "strategies/program/lower/block.h"

namespace foreshard::lower {

/// A tensor that one piece of the model hands to the next.
struct Boundary {
  std::vector<std::int64_t> shape{};
  DType dtype = DType::kBf16;
  Attribute lies{};          ///< Layout over the ranks.
  Attribute sent{};          ///< Layout while it is sent.
  bool has_gradient = true;  ///< The piece that reads it hands its gradient back.
  bool operator==(const Boundary&) const = default;
};

/// What an action works on, as far as its block depends on it. Which of the fields are set follows
/// from plan::target_of(kind).
struct Subject {
  plan::ActionKind kind = plan::ActionKind::kSync;
  Direction direction = Direction::kForward;
  plan::PassPart part = plan::PassPart::kWhole;
  std::string mark{};  ///< Tells apart the names of syncs, and of transfers.
  std::string unit{};  ///< Name of the block of its one unit.
  /// The block of its one unit; null: it works on all units of a role.
  const LoweredBlock* block = nullptr;
  plan::Bucket bucket{};
  bool frees = false;  ///< A reduction that frees the whole gradients.
  plan::GradientCopies copies{};
  // Of a transfer:
  const std::vector<Boundary>* boundaries = nullptr;  ///< The tensors of the crossing.
  std::int64_t peer = 0;                              ///< The stage on the other side.
  bool returns = false;                               ///< plan::Action::returns.
  bool syncs = false;                                 ///< The host waits for the receive.
  // Of the optimizer:
  std::vector<plan::ParameterGroup> parameters{};  ///< plan::Role::parameters.
  std::int64_t copied = 0;  ///< Elements whose gradients were copied to the host before.
};

/// Makes the blocks of actions of one strategy.
class ActionBlocks {
 public:
  /// `strategy`, `states` and `mesh` must outlive it. `split_over`: the axes over which parameters
  /// are split.
  ActionBlocks(const Strategy& strategy, const StateSharding& states,
               const std::vector<MeshAxis>& mesh, std::set<Axis> split_over);

  /// \pre the action is no pass.
  program::Block make(const Subject& subject) const;

  /// Names of the buffers for the whole gradients and the whole parameters of a unit's bucket.
  std::string gradients_of(const std::vector<Axis>& over, const std::string& unit) const;
  std::string parameters_of(const std::vector<Axis>& over, const std::string& unit) const;
  /// Elements of a bucket of gradients that one rank has after its reduction.
  std::int64_t reduced_elements(std::int64_t count, const std::vector<Axis>& over) const;

 private:
  DType gradient_dtype() const;
  std::string other_axes(const std::vector<Axis>& axes, const std::vector<Axis>& usual) const;
  program::Block reduction(const Subject& subject) const;
  program::Block copied_gradients(const Subject& subject) const;
  program::Block gather(const Subject& subject) const;
  program::Block gathering(const std::string& name, std::int64_t count,
                           const std::vector<Axis>& over) const;
  program::Block gathering_each(const Subject& subject) const;
  program::Communication transfer(const Subject& subject) const;
  program::Block receive(const Subject& subject) const;
  program::Block send(const Subject& subject) const;
  program::Block copies(const plan::GradientCopies& copies) const;
  program::Block tied(const plan::GradientCopies& copies) const;
  program::Block optimizer(const Subject& subject) const;

  const Strategy& strategy_;
  const StateSharding& states_;
  const std::vector<MeshAxis>& mesh_;
  std::set<Axis> split_over_;
  Axis pipeline_;
  std::vector<Axis> copies_;
  std::vector<Axis> shards_;
};

/// The name of the buffer for the activations of a unit (plan::kKept).
inline std::string kept_buffer(const std::string& unit) {
  return unit + ".activations";
}

}  // namespace foreshard::lower
