#include "strategies/reshard/plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/text_cursor.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard::reshard {
namespace {

std::int64_t ranks_of(const Placement& placement) {
  return placement.device_of_rank.empty() ? std::ssize(placement.cluster->devices())
                                          : std::ssize(placement.device_of_rank);
}

std::size_t index(Axis axis) {
  return static_cast<std::size_t>(axis);
}

double as_double(std::int64_t count) {
  return static_cast<double>(count);
}

// The largest piece that one rank of a group sends another in an all-to-all: the largest
// intersection of a slice before with one after it.
std::int64_t largest_piece(const Slices& from, const Slices& to, std::size_t dimensions) {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const auto& a = from.bounds(d);
    const auto& b = to.bounds(d);
    std::int64_t extent = 0;
    for (std::size_t i = 1, j = 1; i < a.size() && j < b.size();) {
      extent = std::max(extent, std::min(a[i], b[j]) - std::max(a[i - 1], b[j - 1]));
      if (a[i] < b[j])
        ++i;
      else
        ++j;
    }
    elements *= extent;
  }
  return elements;
}

Volume volume_of_transfer(const Step& step, const TensorSpec& tensor) {
  const Slices from(step.from, tensor.shape);
  const Slices to(step.to, tensor.shape);
  constexpr std::int64_t kNone = -1;
  std::vector<std::int64_t> source;  // rank -> position in the source
  for (std::int64_t i = 0; i < step.from.mesh.size(); ++i) {
    const auto rank = static_cast<std::size_t>(step.from.mesh.ranks[static_cast<std::size_t>(i)]);
    if (rank >= source.size()) source.resize(rank + 1, kNone);
    source[rank] = i;
  }
  // Every target rank receives each element of its slice once, except the elements that it already
  // holds.
  double all = 0;
  double received = 0;
  for (std::int64_t j = 0; j < step.to.mesh.size(); ++j) {
    const auto rank = static_cast<std::size_t>(step.to.mesh.ranks[static_cast<std::size_t>(j)]);
    const std::int64_t own = rank < source.size() ? source[rank] : kNone;
    double elements = 1;
    double held = own == kNone ? 0 : 1;
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      const auto [begin, end] = to.range(j, d);
      elements *= as_double(end - begin);
      if (own == kNone) continue;
      const auto [own_begin, own_end] = from.range(own, d);
      held *=
          as_double(std::max<std::int64_t>(0, std::min(end, own_end) - std::max(begin, own_begin)));
    }
    all += elements;
    received += elements - held;
  }
  const Bytes element = size_of(tensor.dtype);
  return {.logical = bytes_of(tensor),
          .patent_total = element * all,
          .exact_total = element * received};
}

constexpr double kMostBytes = 9007199254740992;  // 2^53

std::string known_types() {
  return quoted_choice(dtype_names());
}

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
  using SenderLoad = std::pair<std::int64_t, std::int64_t>;
  std::set<SenderLoad> all;
  std::map<std::int32_t, std::set<SenderLoad>> on_node;
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

std::optional<std::string> fault_in(const Placement& placement, const ProcessMesh& mesh) {
  const std::int64_t ranks = ranks_of(placement);
  const auto devices = std::ssize(placement.cluster->devices());
  for (const std::int32_t rank : mesh.ranks) {
    if (rank >= ranks || placement.device(rank).value() >= devices)
      return "rank " + std::to_string(rank) + " is not in cluster '" + placement.cluster->name() +
             "', which has " + std::to_string(devices) + " devices: use ranks 0 to " +
             std::to_string(std::min(ranks, devices) - 1) + " or a larger cluster";
  }
  return std::nullopt;
}

std::vector<std::int32_t> nodes_of_ranks(const Placement& placement) {
  std::vector<std::int32_t> nodes;
  const std::int64_t ranks = ranks_of(placement);
  nodes.reserve(static_cast<std::size_t>(ranks));
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    nodes.push_back(placement.cluster->devices()[placement.device(rank).index()].node);
  return nodes;
}

Bytes bytes_of(const TensorSpec& tensor) {
  Bytes bytes = size_of(tensor.dtype);
  for (const auto extent : tensor.shape) bytes = bytes * as_double(extent);
  return bytes;
}

std::string_view name_of(Primitive primitive) {
  constexpr std::array<std::string_view, 8> kNames{
      "all_reduce", "reduce_scatter", "all_gather", "all_to_all",
      "broadcast",  "transfer",       "slice",      "pad"};
  return kNames[static_cast<std::size_t>(primitive)];
}

bool is_local(Primitive primitive) {
  return primitive == Primitive::kSlice || primitive == Primitive::kPad;
}

std::optional<program::CollectiveKind> collective_of(Primitive primitive) {
  switch (primitive) {
    case Primitive::kAllReduce:
      return program::CollectiveKind::kAllReduce;
    case Primitive::kReduceScatter:
      return program::CollectiveKind::kReduceScatter;
    case Primitive::kAllGather:
      return program::CollectiveKind::kAllGather;
    case Primitive::kAllToAll:
      return program::CollectiveKind::kAllToAll;
    case Primitive::kBroadcast:
      return program::CollectiveKind::kBroadcast;
    case Primitive::kTransfer:
    case Primitive::kSlice:
    case Primitive::kPad:
      return std::nullopt;
  }
  return std::nullopt;
}

std::vector<std::vector<std::int32_t>> groups_of(const Step& step) {
  FORESHARD_CHECK(collective_of(step.primitive).has_value());
  const ProcessMesh& mesh = step.to.mesh;
  // A position's group, and its place in the group, are mixed-radix numbers of its coordinates.
  struct Digit {
    std::int64_t size;
    std::int64_t weight;
    bool inside;
  };
  std::vector<Digit> digits;
  std::int64_t members = 1;
  std::int64_t groups = 1;
  for (Axis axis = 0; index(axis) < mesh.axes.size(); ++axis) {
    const bool inside = std::ranges::find(step.axes, axis) != step.axes.end();
    std::int64_t& weight = inside ? members : groups;
    digits.push_back({mesh.axes[index(axis)].size, weight, inside});
    weight *= mesh.axes[index(axis)].size;
  }
  std::vector<std::vector<std::int32_t>> result(
      static_cast<std::size_t>(groups),
      std::vector<std::int32_t>(static_cast<std::size_t>(members)));
  for (std::size_t position = 0; position < mesh.ranks.size(); ++position) {
    auto rest = static_cast<std::int64_t>(position);
    std::int64_t group = 0;
    std::int64_t member = 0;
    for (const Digit& digit : digits) {
      (digit.inside ? member : group) += rest % digit.size * digit.weight;
      rest /= digit.size;
    }
    result[static_cast<std::size_t>(group)][static_cast<std::size_t>(member)] =
        mesh.ranks[position];
  }
  if (step.primitive == Primitive::kBroadcast) {
    std::vector<std::int32_t> roots = step.from.mesh.ranks;
    std::ranges::sort(roots);
    for (auto& group : result) {
      const auto root = std::ranges::find_if(group, [&](std::int32_t rank) {
        return std::binary_search(roots.begin(), roots.end(), rank);
      });
      FORESHARD_CHECK(root != group.end());
      std::rotate(group.begin(), root, root + 1);
    }
  }
  return result;
}

Volume volume_of_group(Primitive primitive, Bytes held, double ranks) {
  const double p = ranks;
  switch (primitive) {
    case Primitive::kAllReduce:
      return {held, held * (2 * p), held * (2 * (p - 1))};
    case Primitive::kReduceScatter:
    case Primitive::kAllGather:
    case Primitive::kBroadcast:
      return {held, held * p, held * (p - 1)};
    case Primitive::kAllToAll:
      return {held, held, held * ((p - 1) / p)};
    case Primitive::kSlice:
    case Primitive::kPad:
      return {.logical = held};
    case Primitive::kTransfer:
      break;
  }
  FORESHARD_CHECK(primitive != Primitive::kTransfer);
  return {};
}

Bytes communication_bytes(Primitive primitive, Bytes logical, double ranks) {
  return primitive == Primitive::kAllToAll ? logical / ranks : logical;
}

Bytes logical_bytes(const Step& step, const TensorSpec& tensor) {
  const double ranks = as_double(ways(step.axes, step.to.mesh.axes));
  const Slices from(step.from, tensor.shape);
  const Slices to(step.to, tensor.shape);
  double elements = 0;
  switch (step.primitive) {
    case Primitive::kAllGather:
      elements = as_double(from.largest()) * ranks;
      break;
    case Primitive::kReduceScatter:
      elements = as_double(to.largest()) * ranks;
      break;
    case Primitive::kAllToAll:
      elements = as_double(largest_piece(from, to, tensor.shape.size())) * ranks * ranks;
      break;
    case Primitive::kBroadcast:
      elements = as_double(to.largest());
      break;
    case Primitive::kAllReduce:
    case Primitive::kSlice:
    case Primitive::kPad:
      elements = as_double(from.largest());
      break;
    case Primitive::kTransfer:
      FORESHARD_CHECK(step.primitive != Primitive::kTransfer);
  }
  return size_of(tensor.dtype) * elements;
}

Volume volume_of(const Step& step, const TensorSpec& tensor) {
  if (step.primitive == Primitive::kTransfer) return volume_of_transfer(step, tensor);
  const double ranks = as_double(ways(step.axes, step.to.mesh.axes));
  const double groups = as_double(step.to.mesh.size()) / ranks;
  Volume volume = volume_of_group(step.primitive, logical_bytes(step, tensor), ranks);
  volume.patent_total = volume.patent_total * groups;
  volume.exact_total = volume.exact_total * groups;
  return volume;
}

Volume volume_of(const Plan& plan, const TensorSpec& tensor) {
  Volume sum;
  for (const Step& step : plan.steps) {
    const Volume volume = volume_of(step, tensor);
    sum.logical = std::max(sum.logical, volume.logical);
    sum.patent_total += volume.patent_total;
    sum.exact_total += volume.exact_total;
  }
  return sum;
}

Result<TensorSpec> parse_tensor(std::string_view text) {
  TextCursor cursor("tensor", text);
  const std::size_t place = cursor.place();
  const auto word = cursor.name();
  if (!word) return cursor.expected("an element type such as bf16");
  const auto dtype = find_dtype(*word);
  if (!dtype)
    return cursor.error(place,
                        "'" + *word + "' is not an element type: known are " + known_types());
  TensorSpec tensor{.dtype = *dtype};
  if (!cursor.take('[')) return cursor.expected("'[' and the extents, as in bf16[8192, 53248]");
  double bytes = size_of(*dtype).in_base();
  if (!cursor.sees(']')) {
    do {
      const std::size_t where = cursor.place();
      const auto extent = cursor.number();
      if (!extent) return cursor.expected("the extent of a dimension, a whole number");
      bytes *= static_cast<double>(*extent);
      if (bytes > kMostBytes || *extent > static_cast<std::int64_t>(kMostBytes))
        return cursor.error(where, "with this dimension the tensor has more than 2^53 bytes");
      tensor.shape.push_back(*extent);
    } while (cursor.take(','));
  }
  if (!cursor.take(']')) return cursor.expected("',' or ']'");
  if (!cursor.at_end()) return cursor.expected("the end of the text");
  return tensor;
}

std::string describe(const TensorSpec& tensor) {
  std::string text = std::string(name_of(tensor.dtype)) + "[";
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    text += (d > 0 ? ", " : "") + std::to_string(tensor.shape[d]);
  return text + "]";
}

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
