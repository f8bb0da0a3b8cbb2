#include "strategies/program/lower/pass_calls.h"

#include <utility>

#include "base/check.h"
#include "base/index.h"

namespace foreshard::lower {
namespace {

// Lists the calls of one pass.
class Lister {
 public:
  Lister(const plan::Action& pass, const plan::Parts& parts, const PlannedBlocks& blocks,
         bool trains, Branches& branches)
      : pass_(pass),
        is_forward_(pass.direction == Direction::kForward),
        parts_(parts),
        blocks_(blocks),
        trains_(trains),
        branches_(branches) {}

  std::vector<PassCall> run() && {
    const plan::Run& units = pass_.units;
    const auto nth = [&](std::int32_t i) {
      return is_forward_ ? units.first + i : units.first + units.count - 1 - i;
    };
    for (std::int32_t i = 0; i < units.count;) {
      unit_ = nth(i);
      const plan::Unit& unit = parts_.units[at(unit_)];
      const Pieces& pieces = pieces_of(*blocks_.blocks[at(unit.block)]);
      std::int32_t alike = 1;
      if (is_one_block(pieces)) {
        // Iterations of one call do not wait for each other's conversions.
        const bool has_open_conversion = open_conversion(pieces.front().block) >= 0;
        while (!has_open_conversion && i + alike < units.count &&
               parts_.units[at(nth(i + alike))].block == unit.block)
          ++alike;
        calls_.push_back({.of = unit.block,
                          .tasks = &pieces.front().block,
                          .repeat = alike,
                          .first_layer = unit.layer,
                          .layer_step = alike > 1 ? step() : 1});
      } else {
        add(pieces, unit.layer, {});
      }
      i += alike;
    }
    return std::move(calls_);
  }

 private:
  std::int32_t step() const { return is_forward_ ? 1 : -1; }

  const Pieces& pieces_of(const LoweredBlock& block) const {
    if (is_forward_) return block.forward;
    if (pass_.part != plan::Part::kWhole)
      return pass_.part == plan::Part::kInput ? block.split->input : block.split->weight;
    return pass_.reduces ? block.reducing : block.backward;
  }

  // Adds the calls of `pieces`. `path`: the loops and conditions around them, by their names in the
  // forward pass; `layer`: the iteration of these loops.
  void add(const Pieces& pieces, std::int64_t layer, const std::string& path) {
    const Piece* first = first_block(pieces);
    const Piece* last = last_block(pieces);
    for (const Piece& piece : pieces) {
      const std::string inner = path + '/' + piece.key;
      switch (piece.kind) {
        case Piece::Kind::kBlock:
          calls_.push_back({.of = parts_.units[at(unit_)].block,
                            .tasks = &piece.block,
                            .begins = path.empty() && &piece == first,
                            .ends = path.empty() && &piece == last,
                            .first_layer = static_cast<std::int32_t>(layer)});
          break;
        case Piece::Kind::kLoop:
          add_loop(piece, layer, inner);
          break;
        case Piece::Kind::kChoice:
          add(piece.bodies[branch(piece, layer, inner)], layer, inner);
          break;
      }
    }
  }

  void add_loop(const Piece& loop, std::int64_t layer, const std::string& path) {
    const Pieces& body = loop.bodies[0];
    const std::int64_t first = layer * loop.count + (is_forward_ ? 0 : loop.count - 1);
    if (loop.count > 0 && is_one_block(body) && open_conversion(body.front().block) < 0) {
      calls_.push_back({.of = parts_.units[at(unit_)].block,
                        .tasks = &body.front().block,
                        .begins = false,
                        .ends = false,
                        .repeat = static_cast<std::int32_t>(loop.count),
                        .first_layer = static_cast<std::int32_t>(first),
                        .layer_step = step()});
      return;
    }
    for (std::int64_t i = 0; i < loop.count; ++i) add(body, first + i * step(), path);
  }

  std::size_t branch(const Piece& choice, std::int64_t layer, const std::string& path) {
    const Branches::Place place{pass_.micro_batch, unit_, path, layer};
    return is_forward_ ? branches_.draw(place, choice.probability, trains_) : branches_.take(place);
  }

  const plan::Action& pass_;
  bool is_forward_;
  const plan::Parts& parts_;
  const PlannedBlocks& blocks_;
  bool trains_;
  Branches& branches_;
  std::int32_t unit_ = 0;  // the unit whose pieces are listed
  std::vector<PassCall> calls_;
};

}  // namespace

std::size_t Branches::draw(Place place, double probability, bool is_taken_again) {
  const double draw = static_cast<double>(random_() >> 11U) * 0x1.0p-53;
  const std::size_t taken = draw < probability ? 0 : 1;
  if (is_taken_again) taken_.insert_or_assign(std::move(place), taken);
  return taken;
}

std::size_t Branches::take(const Place& place) const {
  const auto known = taken_.find(place);
  FORESHARD_CHECK(known != taken_.end());
  return known->second;
}

std::vector<PassCall> calls_of(const plan::Action& pass, const plan::Parts& parts,
                               const PlannedBlocks& blocks, bool trains, Branches& branches) {
  return Lister(pass, parts, blocks, trains, branches).run();
}

std::vector<PassCall> cut(const std::vector<PassCall>& calls, BlockCuts& cuts) {
  std::vector<PassCall> all;
  for (const PassCall& call : calls) {
    const auto [known, is_new] = cuts.try_emplace(call.tasks);
    if (is_new) known->second = cut_at_exchanges(*call.tasks);
    const std::vector<BlockPart>& parts = known->second;
    if (parts.size() == 1) {
      all.push_back(call);
      continue;
    }
    for (std::int32_t i = 0; i < call.repeat; ++i) {
      for (std::size_t part = 0; part < parts.size(); ++part)
        all.push_back({.of = call.of,
                       .tasks = &parts[part].block,
                       .begins = call.begins && part == 0,
                       .ends = call.ends && part + 1 == parts.size(),
                       .first_layer = call.first_layer + i * call.layer_step,
                       .part = static_cast<std::int32_t>(part),
                       .after = parts[part].after});
    }
  }
  return all;
}

}  // namespace foreshard::lower
