/// \file
/// The blocks of a general graph's forward or backward pass: one for each stretch of operators
/// between loops and conditions, and those of their bodies.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "strategies/graph/sharding.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/ir/program.h"

namespace foreshard::lower {

/// A piece of a pass, in the order of execution.
struct Piece {
  enum class Kind : std::uint8_t {
    kBlock,   ///< A block.
    kLoop,    ///< bodies[0], `count` times.
    kChoice,  ///< bodies[0] with `probability`, else bodies[1].
  } kind = Kind::kBlock;
  program::Block block{};
  /// Elements of gradients that the block reduces, by the axes they are partial over.
  std::map<std::vector<Axis>, std::int64_t> reduced{};
  std::string key{};  ///< Of loops and conditions: the forward operator's name.
  std::int64_t count = 1;
  double probability = 1;
  std::vector<std::vector<Piece>> bodies{};
};
using Pieces = std::vector<Piece>;

/// Elements that a rank holds of parameters whose gradients are partial over exactly these axes.
struct GraphParameters {
  std::map<std::vector<Axis>, std::int64_t> elements{};
  Bytes bytes{};  ///< Of these and of parameters that nothing flows back to, as they are stored.
  std::set<Axis> split_over{};
  std::vector<std::string> untrained{};  ///< Of a pass backward: those that it leaves out.
};

struct PassOptions {
  Direction direction = Direction::kForward;
  bool overlap = false;  ///< As for Emitter.
  bool reduces = false;  ///< Gradients are reduced in buckets as they come.
  bool seeds = true;     ///< A backward pass begins with gradients that nothing around it gives.
  const Strategy* strategy = nullptr;
};

/// The pieces of a pass over `sharded`, named after `name`.
Pieces pieces_of(const ShardedGraph& sharded, const std::string& name, const PassOptions& options);

/// Adds what lives in memory to the pieces: in `forward` and `backward`, if there is one, what is
/// kept between them, and what comes and goes in each.
void add_memory(const ShardedGraph& forward_graph, Pieces& forward,
                const ShardedGraph* backward_graph, Pieces* backward);

/// The parameters of a graph and its bodies.
/// \param backward  null: nothing is trained.
GraphParameters parameters_of(const ShardedGraph& forward, const ShardedGraph* backward);

/// Appends the reduction of `count` gradients that are partial over `axes`: to shards of the
/// data-parallel ranks if the strategy shares the optimizer state, else to all.
void append_reduction(program::Block& block, const std::string& name, std::int64_t count,
                      const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh,
                      const Strategy& strategy, std::vector<std::int32_t> after);

}  // namespace foreshard::lower
