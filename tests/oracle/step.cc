#include "tests/oracle/step.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "base/check.h"
#include "tests/oracle/internal/role.h"
#include "tests/oracle/random.h"

#include "strategies/parallelism/graphs.h"
#include "strategies/plan/walk.h"
#include "strategies/program/lower/block.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::execute {
namespace {

using plan::ActionKind;
using Together = std::vector<plan::At>;

// The likeliest lane is drawn up to this many times as often as the least likely one.
constexpr double kMostLikely = 4096;

class WholeStep {
 public:
  WholeStep(const Model& model, const Strategy& strategy, const plan::StepPlan& plan,
            const StepOptions& options)
      : training_{.model = model, .strategy = strategy, .plan = plan, .options = options},
        walk_(plan, strategy.framework->gradient_clipping),
        order_(key_of(options.order, "order")) {}

  Result<StepResult> run() {
    FORESHARD_TRY(prepare());
    for (Together next = drawn(); !next.empty(); next = drawn()) {
      FORESHARD_TRY(carry_out(next));
      walk_.finish(next);
    }
    if (const auto open = walk_.open())
      return Error{Error::Code::kInvalidInput,
                   fmt::format("step plan '{}': {} waits for ever at action {}", plan().parts.name,
                               plan().roles[open->role].name, open->action)};
    for (Role& role : roles_) {
      add(role.parameters().held());
      add(std::move(role.losses()));
      result_.loss += role.loss() / static_cast<double>(training_.strategy.global_batch *
                                                        training_.model.sequence);
    }
    result_.gradient_norm = gradient_norm();
    return std::move(result_);
  }

 private:
  const plan::StepPlan& plan() const { return training_.plan; }
  const plan::Action& action(const plan::At& at) const {
    return plan().roles[at.role].actions[static_cast<std::size_t>(at.action)];
  }

  void add(std::vector<Held> held) {
    for (Held& one : held) result_.held.push_back(std::move(one));
  }

  Status prepare() {
    Training& t = training_;
    const auto& mesh = plan().parts.mesh;
    t.pipeline = axis_of(mesh, "pipeline");
    TransformerGraphs graphs = lower::graphs_of(t.model, t.strategy);
    FORESHARD_TRY(add_block(std::move(graphs.embedding), {.trained_before = false}));
    for (const LayerVariant& variant : layers_of(t.model, t.strategy).variants) {
      FORESHARD_TRY(add_block(graphs.layers[variant.kind], variant));
    }
    for (Graph& prediction : graphs.predictions)
      FORESHARD_TRY(add_block(std::move(prediction), variant_of_prediction(t.strategy)));
    FORESHARD_TRY(add_block(std::move(graphs.head), {}));
    t.sent = lower::as_sent(t.boundary(), t.strategy, mesh);
    for (std::size_t role = 0; role < plan().roles.size(); ++role) roles_.emplace_back(t, role);
    return {};
  }

  Status add_block(Graph graph, const LayerVariant& variant) {
    for (Operator& op : graph.operators)
      if (op.settings.has("rate") && op.settings.number("rate") > 0)
        op.settings.set("rate", training_.options.dropout);
    FORESHARD_ASSIGN(auto block, sharded_block(training_, std::move(graph), variant));
    training_.blocks.push_back(std::move(block));
    return {};
  }

  // --- order ---------------------------------------------------------------------------------

  // One of what may run. Each lane is likely in its own measure, so that it may be far behind or
  // far ahead of the others.
  Together drawn() {
    std::vector<Together> ready;
    std::vector<double> likely;
    for (std::size_t role = 0; role < roles_.size(); ++role) {
      for (std::size_t lane = 0; lane < plan::kLanes; ++lane) {
        Together next = walk_.next(role, static_cast<plan::Lane>(lane));
        if (next.empty()) continue;
        ready.push_back(std::move(next));
        likely.push_back(std::pow(
            kMostLikely, uniform(order_, static_cast<std::int64_t>(role * plan::kLanes + lane))));
      }
    }
    if (ready.empty()) return {};
    double left = uniform(key_of(order_, "draw"), draws_++) *
                  std::accumulate(likely.begin(), likely.end(), 0.0);
    std::size_t i = 0;
    while (i + 1 < ready.size() && (left -= likely[i]) >= 0) ++i;
    return std::move(ready[i]);
  }

  Status carry_out(const Together& together) {
    const plan::At& at = together.front();
    const plan::Action& what = action(at);
    RoleParameters& parameters = roles_[at.role].parameters();
    switch (what.kind) {
      case ActionKind::kPass:
        return roles_[at.role].pass(at.action);
      case ActionKind::kGather:
        parameters.gather(what);
        break;
      case ActionKind::kReduce:
        parameters.reduce(what);
        break;
      case ActionKind::kReduceCopies:
        reduce_copies(together, plan().copies[static_cast<std::size_t>(what.what)]);
        break;
      case ActionKind::kSend:
        roles_[together.back().role].receive(action(together.back()), roles_[at.role].send(what));
        break;
      case ActionKind::kOptimizer:
        optimize(together);
        break;
      case ActionKind::kOffload:  // values are where they were
      case ActionKind::kFetch:
      case ActionKind::kOffloadGradients:
      case ActionKind::kReceive:  // with its send
      case ActionKind::kSync:     // a matter of order alone
        break;
    }
    return {};
  }

  // --- end of the step -------------------------------------------------------------------------

  void reduce_copies(const Together& together, const plan::GradientCopies& copies) {
    for (const plan::At& at : together) roles_[at.role].parameters().settle();
    if (copies.roles.size() > 1) return reduce_tied(copies.roles);
    roles_[together.front().role].parameters().reduce_copies(copies.axes);
  }

  // Roles that hold a copy each of a tied table add up their gradients, rank by rank.
  void reduce_tied(const std::vector<std::int32_t>& roles) {
    const auto gradients = [&](std::int32_t role) -> Arrays& {
      return roles_[static_cast<std::size_t>(role)].parameters().tied().gradients;
    };
    Arrays sum = gradients(roles.front());
    for (std::size_t i = 1; i < roles.size(); ++i) add_to(sum, gradients(roles[i]));
    for (const std::int32_t role : roles) gradients(role) = sum;
  }

  void optimize(const Together& together) {
    for (const plan::At& at : together) roles_[at.role].parameters().settle();
    double factor = 1;
    if (training_.strategy.framework->gradient_clipping)
      factor = std::min(1.0, training_.options.clip / (gradient_norm() + 1e-6));
    for (const plan::At& at : together)
      roles_[at.role].parameters().update(factor, training_.strategy.optimizer.rule);
  }

  // The first role answers for a tied table.
  double gradient_norm() {
    double sum = 0;
    for (std::size_t role = 0; role < roles_.size(); ++role)
      sum += roles_[role].parameters().squared_norm(role == 0);
    return std::sqrt(sum);
  }

  Training training_;
  plan::Walk walk_;
  std::uint64_t order_;
  std::int64_t draws_ = 0;
  std::vector<Role> roles_;
  StepResult result_;
};

}  // namespace

Result<StepResult> execute_step(const Model& model, const Strategy& strategy,
                                const StepOptions& options) {
  FORESHARD_ASSIGN(const auto plan, lower::plan_of(model, strategy));
  return execute_step(model, strategy, plan, options);
}

Result<StepResult> execute_step(const Model& model, const Strategy& strategy,
                                const plan::StepPlan& plan, const StepOptions& options) {
  return WholeStep(model, strategy, plan, options).run();
}

}  // namespace foreshard::execute
