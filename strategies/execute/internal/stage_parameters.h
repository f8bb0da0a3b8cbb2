/// \file
/// The parameters of one pipeline stage on its ranks, with gradients and optimizer state: private
/// to step.cc. Each rank keeps them in flat buckets, as frameworks do:
///
/// - one bucket per block of the model (embedding, each layer, head), in the order of the graph;
/// - a tied embedding table has a bucket of its own wherever it is held, so that its shards on the
///   first and the last stage are the same elements (Megatron-LM,
///   megatron/core/distributed/param_and_grad_buffer.py).
///
/// A bucket is padded to a multiple of the data-parallel size. Under ZeRO-1 and above rank d of it
/// owns the d-th equal part of the optimizer state, under ZeRO-3 of the parameters too; elements
/// that a rank does not own are NaN.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strategies/execute/graph.h"
#include "strategies/execute/step.h"
#include "strategies/parallelism/state_sharding.h"

namespace foreshard::execute {

/// The axes of a training mesh by their role.
struct TrainingAxes {
  Axis tensor = 0;
  Axis data = 0;
  Axis pipeline = 0;
};

/// A parameter in a bucket.
struct Entry {
  std::string name;
  Shape shape;                       ///< Of the logical parameter.
  std::vector<Box> boxes{};          ///< By position of the stage's mesh.
  std::vector<Axis> split{};         ///< Axes that split it.
  std::vector<Axis> also_partial{};  ///< Its gradient is partial over these, besides data.
  std::int64_t offset = 0;           ///< In the bucket.
  std::int64_t elements = 0;         ///< On one rank.
};

/// One number per element of a bucket, by position.
using Flat = std::vector<std::vector<double>>;

struct Bucket {
  std::vector<Entry> entries{};
  bool tied = false;
  std::int64_t padded = 0;
  Flat parameters{};
  Flat summands{};   ///< Gradients of this rank's micro-batches since the last reduction.
  Flat gradients{};  ///< Reduced over the data-parallel ranks.
  Flat first_moment{};
  Flat second_moment{};
  Flat gathered{};  ///< ZeRO-3: whole parameters while a pass needs them.
};

/// Where a tensor of a block's graph lies.
struct Place {
  std::size_t bucket = 0;
  std::size_t entry = 0;
  bool transposed = false;  ///< The graph wants the tied table the other way round.
};

/// A block of the model on this stage.
struct Unit {
  std::string name;                    ///< "embedding", "layers.3", "head"
  std::map<TensorId, Place> places{};  ///< Of its graph's parameters.
  std::vector<std::size_t> owned{};    ///< Buckets that are reduced and gathered with it.
  std::vector<std::size_t> needed{};   ///< Buckets that it reads.
};

class StageParameters {
 public:
  StageParameters(const Strategy& strategy, const StepOptions& options, ProcessMesh mesh,
                  TrainingAxes axes);

  /// Adds a block: `also_partial` of its parameters by tensor. Of a tied model the table is the
  /// parameter "embedding.weight" of the embedding and "logits.weight" of the head.
  Unit add(const std::string& name, const Graph& graph,
           const std::map<TensorId, std::vector<Axis>>& also_partial, bool tied);

  /// The parameters of the unit for its graph.
  Tensors parameters_of(const Unit& unit, const Graph& graph) const;
  /// Adds what a backward pass found to the summands. `gradients`: by parameter.
  void accumulate(const Unit& unit, const Tensors& gradients);

  const StateSharding& sharding() const { return sharding_; }
  std::int64_t replicas() const { return sharding_.replicas; }

  void gather(const Unit& unit);   ///< ZeRO-3: before a pass.
  void release(const Unit& unit);  ///< ZeRO-3: after it.
  void gather_all();               ///< ZeRO-1 and 2: between steps.
  /// Summands become gradients (or are added to them), over the data-parallel ranks.
  void reduce(const Unit& unit);
  /// Gradients of what tensor-parallel ranks have copies of but saw parts for.
  void reduce_replicated();

  /// Squared norm of the gradients that rank `position` answers for: what it owns and no rank
  /// before it has a copy of. `counts_tied`: this stage answers for the tied table.
  double squared_norm(std::int64_t position, bool counts_tied) const;
  void update(double clip_factor);

  const ProcessMesh& mesh() const { return mesh_; }
  std::vector<Bucket>& buckets() { return buckets_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// [begin, end) of a bucket's elements that a rank owns.
  std::pair<std::int64_t, std::int64_t> owned(const Bucket& bucket, std::int64_t position) const;
  /// What the rank owns (`all`: has) of `values`, per parameter.
  std::vector<Held> held(const Flat Bucket::*values, const std::string& suffix, bool all) const;

 private:
  void add_entry(Bucket& bucket, Entry entry) const;
  void fill(Bucket& bucket) const;
  Flat convert_flat(const Flat& flat, std::int64_t padded, bool from_split, bool from_partial,
                    bool to_split) const;

  const Strategy& strategy_;
  StateSharding sharding_;
  const StepOptions& options_;
  ProcessMesh mesh_;
  TrainingAxes axes_;
  std::vector<Bucket> buckets_;
};

}  // namespace foreshard::execute
