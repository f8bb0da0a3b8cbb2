#include "strategies/program/lower/program_per_rank.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

namespace foreshard::lower {
namespace {

using program::Block;
using program::BlockId;
using program::Program;
using program::Role;

// The blocks of several Programs; equal blocks are held once.
class Blocks {
 public:
  // \param name  tells it apart from a different block of the same name.
  BlockId id_of(Block block, const std::string& name) {
    auto found = known_.find(block.name);
    if (found != known_.end() && all_[found->second.index()] != block) {
      block.name += ", " + name;
      found = known_.find(block.name);
    }
    if (found != known_.end()) return found->second;
    const BlockId id{static_cast<std::int64_t>(all_.size())};
    known_.emplace(block.name, id);
    all_.push_back(std::move(block));
    return id;
  }
  std::vector<Block> take() { return std::move(all_); }

 private:
  std::vector<Block> all_;
  std::map<std::string, BlockId> known_;
};

}  // namespace

Program joined(ProgramPerRank step) {
  Blocks blocks;
  std::vector<std::vector<BlockId>> ids;
  for (std::size_t p = 0; p < step.programs.size(); ++p) {
    ids.emplace_back();
    for (Block& block : step.programs[p].blocks)
      ids[p].push_back(blocks.id_of(std::move(block), step.names[p]));
  }
  std::vector<Role> roles;
  for (std::size_t stage = 0; stage < step.programs.front().roles.size(); ++stage) {
    for (std::size_t p = 0; p < step.programs.size(); ++p) {
      Role role = std::move(step.programs[p].roles[stage]);
      role.name += ", " + step.names[p];
      std::erase_if(role.ranks, [&](std::int32_t rank) {
        return step.program_of_rank[static_cast<std::size_t>(rank)] != p;
      });
      for (program::Call& call : role.calls) call.block = ids[p][call.block.index()];
      if (!role.ranks.empty()) roles.push_back(std::move(role));
    }
  }
  Program all = std::move(step.programs.front());
  all.blocks = blocks.take();
  all.roles = std::move(roles);
  return all;
}

}  // namespace foreshard::lower
