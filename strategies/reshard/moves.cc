#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"

#include "strategies/reshard/plan.h"

namespace foreshard::reshard {
namespace {

struct PartRange {
  std::size_t first = 0;
  std::size_t end = 0;
};

// The parts of dimension `dim` that share an element with [begin, end); empty parts share none.
// Parts in between may be empty.
PartRange parts_within(const std::vector<std::int64_t>& bounds, std::int64_t begin,
                       std::int64_t end) {
  const auto first = std::upper_bound(bounds.begin(), bounds.end(), begin) - bounds.begin() - 1;
  const auto last = std::lower_bound(bounds.begin(), bounds.end(), end) - bounds.begin();
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(last)};
}

// The holders of one source slice with the elements that each has sent so far, over all nodes and
// per node. Sets are ordered by (elements, position): the first entry sends next.
struct Replicas {
  using Load = std::pair<std::int64_t, std::int64_t>;
  std::set<Load> all;
  std::map<std::int32_t, std::set<Load>> on_node;
  std::map<std::int64_t, std::int64_t> sent;
};

class Senders {
 public:
  Senders(const Step& step, const Slices& slices, const Shape& shape,
          const std::vector<std::int32_t>& node_of_rank)
      : mesh_(step.from.mesh), node_of_rank_(node_of_rank) {
    std::size_t count = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      weights_.push_back(count);
      count *= slices.bounds(d).size() - 1;
    }
    replicas_.resize(count);
    for (std::int64_t i = 0; i < mesh_.size(); ++i) {
      std::size_t slice = 0;
      for (std::size_t d = 0; d < shape.size(); ++d)
        slice += static_cast<std::size_t>(slices.part_of(i, d)) * weights_[d];
      Replicas& replicas = replicas_[slice];
      replicas.all.insert({0, i});
      replicas.on_node[node_of(rank_at(i))].insert({0, i});
      replicas.sent[i] = 0;
      position_.emplace(rank_at(i), i);
    }
  }

  // The rank that sends `elements` of the slice with these part indices to `target`.
  std::int32_t choose(const std::vector<std::size_t>& parts, std::int32_t target,
                      std::int64_t elements) {
    std::size_t slice = 0;
    for (std::size_t d = 0; d < parts.size(); ++d) slice += parts[d] * weights_[d];
    Replicas& replicas = replicas_[slice];
    const auto own = position_.find(target);
    if (own != position_.end() && replicas.sent.contains(own->second)) return target;
    const auto near = replicas.on_node.find(node_of(target));
    const std::int64_t sender =
        (near != replicas.on_node.end() ? near->second : replicas.all).begin()->second;
    std::int64_t& sent = replicas.sent[sender];
    auto& node = replicas.on_node[node_of(rank_at(sender))];
    replicas.all.erase({sent, sender});
    node.erase({sent, sender});
    sent += elements;
    replicas.all.insert({sent, sender});
    node.insert({sent, sender});
    return rank_at(sender);
  }

 private:
  std::int32_t rank_at(std::int64_t position) const {
    return mesh_.ranks[static_cast<std::size_t>(position)];
  }
  std::int32_t node_of(std::int32_t rank) const {
    if (node_of_rank_.empty()) return 0;
    FORESHARD_CHECK(static_cast<std::size_t>(rank) < node_of_rank_.size());
    return node_of_rank_[static_cast<std::size_t>(rank)];
  }

  const ProcessMesh& mesh_;
  const std::vector<std::int32_t>& node_of_rank_;
  std::vector<std::size_t> weights_;
  std::vector<Replicas> replicas_;
  std::map<std::int32_t, std::int64_t> position_;
};

}  // namespace

std::vector<Move> moves_of(const Step& step, const TensorSpec& tensor,
                           const std::vector<std::int32_t>& node_of_rank) {
  FORESHARD_CHECK(step.primitive == Primitive::kTransfer);
  FORESHARD_CHECK(!is_partial(step.from) && !is_partial(step.to));
  const Slices from(step.from, tensor.shape);
  const Slices to(step.to, tensor.shape);
  Senders senders(step, from, tensor.shape, node_of_rank);
  const std::size_t dimensions = tensor.shape.size();
  std::vector<Move> moves;
  for (std::int64_t j = 0; j < step.to.mesh.size(); ++j) {
    const Box slice = to.of(j);
    if (slice.empty()) continue;
    const std::int32_t target = step.to.mesh.ranks[static_cast<std::size_t>(j)];
    std::vector<PartRange> ranges;
    std::vector<std::size_t> parts;
    for (std::size_t d = 0; d < dimensions; ++d) {
      ranges.push_back(parts_within(from.bounds(d), slice.begin[d], slice.end[d]));
      parts.push_back(ranges.back().first);
    }
    // All combinations of parts, the last dimension fastest.
    for (bool more = true; more;) {
      Box piece = slice;
      for (std::size_t d = 0; d < dimensions; ++d) {
        piece.begin[d] = std::max(piece.begin[d], from.bounds(d)[parts[d]]);
        piece.end[d] = std::min(piece.end[d], from.bounds(d)[parts[d] + 1]);
      }
      if (!piece.empty()) {
        const std::int32_t sender = senders.choose(parts, target, piece.elements());
        moves.push_back({.from = sender, .to = target, .box = std::move(piece)});
      }
      more = false;
      for (std::size_t d = dimensions; d-- > 0 && !more;) {
        more = ++parts[d] < ranges[d].end;
        if (!more) parts[d] = ranges[d].first;
      }
    }
  }
  return moves;
}

double count_moves(const Step& step, const TensorSpec& tensor) {
  FORESHARD_CHECK(step.primitive == Primitive::kTransfer);
  const Slices from(step.from, tensor.shape);
  const Slices to(step.to, tensor.shape);
  // [dimension][target part] -> number of source parts that are not empty within it.
  std::vector<std::vector<double>> counts(tensor.shape.size());
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    const auto& source = from.bounds(d);
    const auto& target = to.bounds(d);
    for (std::size_t part = 0; part + 1 < target.size(); ++part) {
      double count = 0;
      if (target[part] < target[part + 1]) {
        const auto range = parts_within(source, target[part], target[part + 1]);
        for (std::size_t i = range.first; i < range.end; ++i) count += source[i] < source[i + 1];
      }
      counts[d].push_back(count);
    }
  }
  double moves = 0;
  for (std::int64_t j = 0; j < step.to.mesh.size(); ++j) {
    double product = 1;
    for (std::size_t d = 0; d < tensor.shape.size(); ++d)
      product *= counts[d][static_cast<std::size_t>(to.part_of(j, d))];
    moves += product;
  }
  return moves;
}

}  // namespace foreshard::reshard
