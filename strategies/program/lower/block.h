/// \file
/// From one block's graph to the tasks that a rank runs for it: the forward and the backward block
/// of the Program, what stays in memory between them, and the parameters they use. Everything here
/// follows from the sharded graphs; no strategy has a formula of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/transformer.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/plan/step_plan.h"
#include "strategies/program/ir/program.h"
#include "strategies/reshard/within_mesh.h"

namespace foreshard::lower {

/// A piece of a pass, in the order of execution.
struct Piece {
  enum class Kind : std::uint8_t {
    kBlock,   ///< A block.
    kLoop,    ///< bodies[0], `count` times.
    kChoice,  ///< bodies[0] with `probability`, else bodies[1].
  } kind = Kind::kBlock;
  program::Block block{};
  std::string key{};  ///< Name of the forward operator of a loop or condition.
  std::int64_t count = 1;
  double probability = 1;
  std::vector<std::vector<Piece>> bodies{};
};
using Pieces = std::vector<Piece>;

inline bool is_one_block(const Pieces& pieces) {
  return pieces.size() == 1 && pieces.front().kind == Piece::Kind::kBlock;
}

/// The first and the last block outside of loops and conditions; nullptr if there is none.
/// \tparam List  Pieces, or const Pieces.
template <class List>
auto* first_block(List& pieces) {
  const auto it = std::ranges::find(pieces, Piece::Kind::kBlock, &Piece::kind);
  return it == pieces.end() ? nullptr : &*it;
}
template <class List>
auto* last_block(List& pieces) {
  const auto it = std::find_if(pieces.rbegin(), pieces.rend(), [](const Piece& piece) {
    return piece.kind == Piece::Kind::kBlock;
  });
  return it == pieces.rend() ? nullptr : &*it;
}

/// \pre is_one_block(pieces)
const program::Block& only_block(const Pieces& pieces);
/// Whether the host waits in a task of some piece.
bool host_waits_in(const Pieces& pieces);

/// Calls `visit` with every block, including blocks in bodies.
template <class Visit>
void visit_blocks(Pieces& pieces, Visit visit) {
  for (Piece& piece : pieces) {
    if (piece.kind == Piece::Kind::kBlock) visit(piece.block);
    for (Pieces& body : piece.bodies) visit_blocks(body, visit);
  }
}

/// Puts tasks, none of which waits for another, before all others of the block.
void put_before(program::Block& block, std::vector<program::Task> tasks);

/// The last task on each stream whose tasks read or write activations: the compute and the tensor
/// stream. (Gradients are reduced on another stream.)
std::vector<std::int32_t> last_uses(const program::Block& block);

/// The last conversion of the block that no task in it waits for; -1: none.
std::int32_t open_conversion(const program::Block& block);

/// The streams of every lowered Program, by index.
enum StreamIndex : std::int32_t {
  kComputeStream,
  kTensorStream,          ///< Conversions (reshards) inside blocks.
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
/// All streams. Programs leave out the last ones that they do not need: without offloading the
/// first kStreamsWithoutHost are enough, and without a V as well the first kStreamsWithoutV.
std::vector<program::Stream> streams();
inline constexpr std::size_t kStreamsWithoutV = kReceiveForwardReturningStream;
inline constexpr std::size_t kStreamsWithoutHost = kToHostStream;
inline program::StreamId stream(StreamIndex index) {
  return program::StreamId{index};
}

/// A backward pass in two parts: gradients of inputs, then of weights. SplitWork (liveness.h)
/// explains the bytes.
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
  /// Set where the schedule splits backward passes and this block's can be split.
  std::optional<SplitBackward> split{};
  Bytes saved;              ///< Activations between forward and backward, one micro-batch.
  Bytes transient_forward;  ///< Peak of the forward pass on top of `saved` (liveness.h).
  Bytes transient_backward;
  std::vector<plan::ParameterGroup> parameters;
  std::vector<std::int64_t> parameter_sizes{};  ///< Elements on one rank, per parameter.
  /// shape -> bytes of a placeholder: where a product adds up a gradient itself, autograd still
  /// wants a gradient tensor in the type of the parameter.
  std::map<std::vector<std::int64_t>, Bytes> placeholders;
  Recompute recompute = Recompute::kNone;  ///< Recomputation in its backward pass.
  std::int64_t largest_parameter = 0;  ///< Elements of the largest one (a tied output projection).

  /// Quantized elements of a parameter of `count` elements that is gathered by itself: all or none.
  /// In a block with quantized weights, parameters that are not quantized are too small to be
  /// gathered by themselves.
  std::int64_t quantized_in(std::int64_t count) const { return quantized() > 0 ? count : 0; }
  std::int64_t elements() const { return sum_of(&plan::ParameterGroup::elements); }
  /// The part of elements() in weights that products read quantized.
  std::int64_t quantized() const { return sum_of(&plan::ParameterGroup::quantized); }

 private:
  std::int64_t sum_of(std::int64_t plan::ParameterGroup::*what) const {
    std::int64_t sum = 0;
    for (const auto& group : parameters) sum += group.*what;
    return sum;
  }
};

/// The block's passes, in all their forms.
std::vector<Pieces*> all_passes(LoweredBlock& block);

/// A transformer's blocks under a strategy; each pass through one is one block of the Program. With
/// `mode: forward`, `backward` has no tasks, nothing is saved, and the inputs of a block count
/// as transient activations.
struct LoweredModel {
  std::vector<MeshAxis> mesh;  ///< mesh_of(strategy).
  LoweredBlock embedding;
  std::vector<LoweredBlock> layers;       ///< One block for each variant (layers.h).
  std::vector<LoweredBlock> predictions;  ///< Modules that each predict one more token.
  LoweredBlock head;
  /// All blocks, in the order of the model: embedding, layers, predictions, head.
  std::vector<const LoweredBlock*> all() const {
    std::vector<const LoweredBlock*> blocks{&embedding};
    for (const LoweredBlock& layer : layers) blocks.push_back(&layer);
    for (const LoweredBlock& prediction : predictions) blocks.push_back(&prediction);
    blocks.push_back(&head);
    return blocks;
  }
  std::vector<std::int64_t> boundary_shape;  ///< Residual stream of a micro-batch, all replicas.
  Attribute boundary;                        ///< Layout of the boundary over the ranks.
  Attribute boundary_sent;                   ///< Layout while it is sent: as_sent().
};

using foreshard::graphs_of;
using foreshard::mesh_of;

/// The layout of a boundary between pipeline stages while it is sent: split over the
/// tensor-parallel ranks, if it is whole on each of them and the framework does so; else unchanged.
Attribute as_sent(const Tensor& boundary, const Strategy& strategy,
                  const std::vector<MeshAxis>& mesh);

/// \pre faults_in(strategy, model, ...) is empty.
/// \return kInvalidInput where a tensor cannot be split as the strategy wants.
Result<LoweredModel> lower_blocks(const Model& model, const Strategy& strategy);

/// The layers and predictions of `lower_blocks(model, strategy)`, in that order, lowered with each
/// recomputation of `ways` in place of the strategy's own. `visit` gets the index of the
/// recomputation and the index of the block. Work that does not depend on the recomputation is done
/// once.
/// \pre `strategy` trains and recomputes all layers, in some way.
using RecomputeVisitor =
    std::function<void(std::size_t way, std::size_t block, const LoweredBlock& lowered)>;
Status lower_with_recomputations(const Model& model, const Strategy& strategy,
                                 std::span<const Recomputation> ways,
                                 const RecomputeVisitor& visit);

/// Appends to `block` the communication that converts a tensor's layout from `from` to `to`, as the
/// series of steps that `planner` gives. Each task waits for the one before it, the first for
/// `after`.
/// \return the index of the last task added, or nothing if all steps are local.
std::optional<std::int32_t> append_reshard(
    program::Block& block, const std::string& name, const std::vector<std::int64_t>& shape,
    DType dtype, const Attribute& from, const Attribute& to, const std::vector<MeshAxis>& mesh,
    program::StreamId stream, std::vector<std::int32_t> after,
    const reshard::MeshPlanner& planner = reshard::steps_within);

/// Elements of a flat buffer of `count` elements that is cut over `axes`. If several axes have more
/// than one rank, it is padded to a multiple of their ranks, so that one operation serves all axes.
std::int64_t padded(std::int64_t count, const std::vector<Axis>& axes,
                    const std::vector<MeshAxis>& mesh);

/// Appends the reduction of `count` gradients that are partial over `axes`: each data-parallel rank
/// gets its shard if the strategy cuts the optimizer's states, else all of them.
void append_reduction(program::Block& block, const std::string& name, std::int64_t count,
                      const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh,
                      const Strategy& strategy, std::vector<std::int32_t> after);

/// The tag of communication along `axes`: "tensor" or "tensor+data".
std::string tag_of(const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard::lower
