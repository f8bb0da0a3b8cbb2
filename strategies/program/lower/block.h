/// \file
/// From one block's graph to the tasks that a rank runs for it: the forward and the backward block
/// of the Program, what stays in memory between them, and the parameters they use. Everything here
/// follows from the sharded graphs; no formula per strategy.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/graph/backward.h"
#include "strategies/graph/sharding.h"
#include "strategies/graph/transformer.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/plan/step_plan.h"
#include "strategies/program/ir/program.h"
#include "strategies/program/lower/pieces.h"
#include "strategies/reshard/mesh_planner.h"

namespace foreshard::lower {

/// The streams of every lowered Program, by index.
enum StreamIndex : std::int32_t {
  kComputeStream,
  kTensorStream,          ///< Reshards inside blocks.
  kDataStream,            ///< Gradients and parameters over data-parallel ranks.
  kReceiveForwardStream,  ///< Pipeline transfers, one stream each way.
  kSendForwardStream,
  kReceiveBackwardStream,
  kSendBackwardStream,
  kReceiveForwardReturningStream,  ///< The same on the way back of a V.
  kSendForwardReturningStream,
  kReceiveBackwardReturningStream,
  kSendBackwardReturningStream,
  kToHostStream,  ///< Operations with the host's memory.
  kFromHostStream,
  kOnHostStream,
};
/// All of them; those of a pipeline without a V are the first ones, where nothing is offloaded.
std::vector<program::Stream> streams();
inline constexpr std::size_t kStreamsWithoutV = kReceiveForwardReturningStream;
inline constexpr std::size_t kStreamsWithoutHost = kToHostStream;
inline program::StreamId stream(StreamIndex index) {
  return program::StreamId{index};
}

/// A backward pass in two parts: gradients of inputs, then of weights. Bytes as SplitWork has them.
struct SplitBackward {
  Pieces input{};
  Pieces weight{};
  Bytes kept_for_weight{};
  Bytes held{};
  Bytes transient_input{};
  Bytes transient_weight{};
};

struct LoweredBlock {
  Pieces forward;
  Pieces backward;
  Pieces reducing{};  ///< `backward` with the reductions of ParameterGroup::reduced_inside.
  std::optional<SplitBackward> split{};  ///< Where the schedule splits passes and this one can be.
  Bytes saved;              ///< Activations between forward and backward, one micro-batch.
  Bytes transient_forward;  ///< What its peak has besides `saved` (liveness.h).
  Bytes transient_backward;
  std::vector<plan::ParameterGroup> parameters;
  std::vector<std::int64_t> parameter_sizes{};  ///< Elements of each that one rank holds.
  /// By shape: the gradient tensors, in the type of their parameters, that autograd wants of
  /// products that add gradients up themselves.
  std::map<std::vector<std::int64_t>, Bytes> placeholders;
  Recompute recompute = Recompute::kNone;  ///< By its backward pass.
  std::int64_t largest_parameter = 0;  ///< Elements of its largest one (a tied output projection).

  /// Of a parameter of `count` elements that is gathered by itself: all or none. What is not
  /// quantized of a block with quantized weights is too small for that.
  std::int64_t quantized_in(std::int64_t count) const { return quantized() > 0 ? count : 0; }
  std::int64_t elements() const { return sum_of(&plan::ParameterGroup::elements); }
  /// Of these, those of weights that products read quantized.
  std::int64_t quantized() const { return sum_of(&plan::ParameterGroup::quantized); }

 private:
  std::int64_t sum_of(std::int64_t plan::ParameterGroup::*what) const {
    std::int64_t sum = 0;
    for (const auto& group : parameters) sum += group.*what;
    return sum;
  }
};

/// Its passes in all forms.
std::vector<Pieces*> all_passes(LoweredBlock& block);

/// A transformer's blocks under a strategy; each pass through one is one block of the Program. Of
/// `mode: forward`, `backward` has no tasks, nothing is saved, and the inputs of a block count
/// among its other activations.
struct LoweredModel {
  std::vector<MeshAxis> mesh;  ///< mesh_of(strategy).
  LoweredBlock embedding;
  std::vector<LoweredBlock> layers;       ///< One for each variant (layers.h).
  std::vector<LoweredBlock> predictions;  ///< Modules that predict one more token each.
  LoweredBlock head;
  /// In the order of the model: embedding, layers, predictions, head.
  std::vector<const LoweredBlock*> all() const {
    std::vector<const LoweredBlock*> blocks{&embedding};
    for (const LoweredBlock& layer : layers) blocks.push_back(&layer);
    for (const LoweredBlock& prediction : predictions) blocks.push_back(&prediction);
    blocks.push_back(&head);
    return blocks;
  }
  std::vector<std::int64_t> boundary_shape;  ///< Residual stream of a micro-batch, all replicas.
  Attribute boundary;                        ///< How it lies.
  Attribute boundary_sent;                   ///< How it lies while it is sent: `as_sent`.
};

using foreshard::graphs_of;
using foreshard::mesh_of;

/// How a boundary between pipeline stages lies while it is sent: in pieces over the tensor-parallel
/// ranks, if it is whole on each of them and the framework does so.
Attribute as_sent(const Tensor& boundary, const Strategy& strategy,
                  const std::vector<MeshAxis>& mesh);

/// \pre faults_in(strategy, model, ...) is empty.
/// \return kInvalidInput where a tensor cannot be split as the strategy wants.
Result<LoweredModel> lower_blocks(const Model& model, const Strategy& strategy);

/// The layers and predictions of `lower_blocks(model, strategy)`, in that order, as each of `ways`
/// in place of the strategy's own computes them again: visited with its index, and that of the
/// block. What does not depend on the ways is done once.
/// \pre `strategy` trains and computes all layers again, in some way.
using VisitAgain =
    std::function<void(std::size_t way, std::size_t block, const LoweredBlock& lowered)>;
Status lower_again(const Model& model, const Strategy& strategy,
                   std::span<const Recomputation> ways, const VisitAgain& visit);

/// The communication tasks of `from` -> `to` of a tensor, by the series that `planner` gives,
/// appended to `block`, each after the one before it and the first after `after`.
/// \return the index of the last task added, or nothing if all steps are local.
std::optional<std::int32_t> append_reshard(
    program::Block& block, const std::string& name, const std::vector<std::int64_t>& shape,
    DType dtype, const Attribute& from, const Attribute& to, const std::vector<MeshAxis>& mesh,
    program::StreamId stream, std::vector<std::int32_t> after,
    const reshard::MeshPlanner& planner = reshard::steps_within);

/// Elements of a flat buffer of `count` that is cut over `axes`: over several at once it is padded
/// to a multiple of their ranks, so that one operation does for all of them.
std::int64_t padded(std::int64_t count, const std::vector<Axis>& axes,
                    const std::vector<MeshAxis>& mesh);

/// Appends the reduction of `count` gradients that are partial over `axes`: to shards of the
/// data-parallel ranks if the strategy cuts the optimizer's states, else to all.
void append_reduction(program::Block& block, const std::string& name, std::int64_t count,
                      const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh,
                      const Strategy& strategy, std::vector<std::int32_t> after);

/// The tag of communication along them: "tensor" or "tensor+data".
std::string tag_of(const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard::lower
