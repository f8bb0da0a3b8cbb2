/// \file
/// The pieces of a pass through a unit of the model, in the Program: blocks and, in a general
/// graph, loops and conditions around them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace foreshard::lower
