#include "tests/oracle/reshard.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "tests/oracle/boxes.h"

namespace foreshard::execute {
namespace {

using reshard::Primitive;
using reshard::Step;
using reshard::TensorSpec;

// One step under way. Arrays are addressed by position: `from_` of the source mesh, `to_` of the
// target mesh.
template <class T>
class Execution {
 public:
  Execution(const Step& step, const TensorSpec& tensor, const Shards<T>& shards)
      : step_(step),
        tensor_(tensor),
        sources_(shards),
        from_(step.from, tensor.shape),
        to_(step.to, tensor.shape) {
    FORESHARD_CHECK(sources_.of_position.size() == step.from.mesh.ranks.size());
    source_of_ = positions_of(step.from.mesh);
    target_of_ = positions_of(step.to.mesh);
    for (std::int64_t j = 0; j < step.to.mesh.size(); ++j) {
      const auto size = static_cast<std::size_t>(to_.of(j).elements());
      targets_.of_position.emplace_back(size);
      writes_.emplace_back(size, 0);
    }
  }

  Executed<T> run(const std::vector<std::int32_t>& node_of_rank) && {
    switch (step_.primitive) {
      case Primitive::kSlice:
        for (const std::int32_t rank : step_.to.mesh.ranks)
          if (const Box box = target_box(rank); !box.empty()) place(rank, rank, box);
        break;
      case Primitive::kPad:
        for (const std::int32_t rank : step_.to.mesh.ranks) pad(rank);
        break;
      case Primitive::kTransfer:
        for (const auto& move : moves_of(step_, tensor_, node_of_rank)) {
          place(move.from, move.to, move.box);
          if (move.from != move.to) crossed_ += move.box.elements();
        }
        break;
      case Primitive::kBroadcast:
        for (const auto& group : groups_of(step_)) broadcast(group);
        break;
      case Primitive::kAllGather:
      case Primitive::kAllToAll:
        for (const auto& group : groups_of(step_)) exchange(group);
        break;
      case Primitive::kReduceScatter:
        for (const auto& group : groups_of(step_)) reduce_scatter(group);
        break;
      case Primitive::kAllReduce:
        for (const auto& group : groups_of(step_)) all_reduce(group);
        break;
    }
    for (const auto& writes : writes_)
      FORESHARD_CHECK(std::ranges::all_of(writes, [](int count) { return count == 1; }));
    return {.shards = std::move(targets_),
            .crossed = size_of(tensor_.dtype) * static_cast<double>(crossed_)};
  }

 private:
  using Group = std::vector<std::int32_t>;
  using Message = std::vector<T>;

  static std::map<std::int32_t, std::int64_t> positions_of(const ProcessMesh& mesh) {
    std::map<std::int32_t, std::int64_t> positions;
    for (std::int64_t i = 0; i < mesh.size(); ++i)
      positions[mesh.ranks[static_cast<std::size_t>(i)]] = i;
    return positions;
  }
  Box source_box(std::int32_t rank) const { return from_.of(source_of_.at(rank)); }
  Box target_box(std::int32_t rank) const { return to_.of(target_of_.at(rank)); }
  const std::vector<T>& source(std::int32_t rank) const {
    return sources_.of_position[static_cast<std::size_t>(source_of_.at(rank))];
  }

  // What `rank` puts into a message: `region` of its array, padded to `size` elements.
  Message packed_by(std::int32_t rank, const Box& region, std::int64_t size) const {
    Message message = packed(region, source(rank), source_box(rank));
    FORESHARD_CHECK(static_cast<std::int64_t>(message.size()) <= size);
    message.resize(static_cast<std::size_t>(size));
    return message;
  }
  void write(std::int32_t rank, const Box& region, const Message& message) {
    const auto j = static_cast<std::size_t>(target_of_.at(rank));
    for_each_row(region, target_box(rank), region,
                 [&](std::size_t a, std::size_t b, std::size_t length) {
                   for (std::size_t i = 0; i < length; ++i) {
                     targets_.of_position[j][a + i] = message[b + i];
                     ++writes_[j][a + i];
                   }
                 });
  }
  void place(std::int32_t from, std::int32_t to, const Box& region) {
    write(to, region, packed_by(from, region, region.elements()));
  }
  void count(std::int32_t from, std::int32_t to, const Message& message) {
    if (from != to) crossed_ += static_cast<std::int64_t>(message.size());
  }

  Reduction reduction() const {
    for (const Partial& partial : step_.from.attribute.partial)
      if (std::ranges::find(step_.axes, partial.axis) != step_.axes.end()) return partial.reduction;
    FORESHARD_CHECK(step_.axes.empty());
    return Reduction::kSum;
  }
  void add(Message& sum, const Message& summand) const {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = reduced(reduction(), sum[i], summand[i]);
  }

  // The first coordinate on the axes that were replicated keeps its values, and every coordinate
  // its slice on those that were split.
  void pad(std::int32_t rank) {
    const auto position = target_of_.at(rank);
    bool keeps = true;
    Reduction kind = Reduction::kSum;
    for (const Axis axis : step_.axes) {
      const bool split = state_of(step_.from.attribute, axis).kind == AxisState::Kind::kSplit;
      keeps = keeps && (split || coordinate_of(step_.to.mesh, position, axis) == 0);
      kind = state_of(step_.to.attribute, axis).reduction;
    }
    const Box box = target_box(rank);
    Message values(static_cast<std::size_t>(box.elements()), identity_of<T>(kind));
    const Box held = source_box(rank);
    if (keeps)
      for_each_row(held, held, box, [&](std::size_t a, std::size_t b, std::size_t length) {
        for (std::size_t i = 0; i < length; ++i) values[b + i] = source(rank)[a + i];
      });
    write(rank, box, values);
  }

  void broadcast(const Group& group) {
    const std::int32_t root = group.front();
    const Message message = packed_by(root, source_box(root), to_.largest());
    for (const std::int32_t rank : group) {
      count(root, rank, message);
      write(rank, target_box(rank), message);
    }
  }

  // All-gather and all-to-all: everyone gets from everyone what it needs of the other's slice; all
  // messages are of one size.
  void exchange(const Group& group) {
    const auto p = static_cast<double>(group.size());
    const double logical = logical_bytes(step_, tensor_) / size_of(tensor_.dtype);
    const std::int64_t size =
        std::llround(logical / (step_.primitive == Primitive::kAllGather ? p : p * p));
    for (const std::int32_t to : group) {
      for (const std::int32_t from : group) {
        const Box region = intersection(source_box(from), target_box(to));
        const Message message = packed_by(from, region, size);
        count(from, to, message);
        write(to, region, message);
      }
    }
  }

  void reduce_scatter(const Group& group) {
    for (const std::int32_t to : group) {
      const Box region = target_box(to);
      Message sum;
      for (const std::int32_t from : group) {
        Message message = packed_by(from, region, to_.largest());
        count(from, to, message);
        if (from == group.front())
          sum = std::move(message);
        else
          add(sum, message);
      }
      write(to, region, sum);
    }
  }

  // Every rank reduces one chunk of all arrays and sends it to the others.
  void all_reduce(const Group& group) {
    const std::int64_t size = from_.largest();
    const auto chunks = balanced_sizes(size, static_cast<std::int64_t>(group.size()));
    std::vector<Message> arrays;
    for (const std::int32_t rank : group) arrays.push_back(packed_by(rank, source_box(rank), size));
    Message whole;
    std::int64_t begin = 0;
    for (std::size_t owner = 0; owner < group.size(); ++owner) {
      const auto chunk_of = [&](const Message& array) {
        return Message(array.begin() + begin, array.begin() + begin + chunks[owner]);
      };
      Message sum = chunk_of(arrays[0]);
      count(group[0], group[owner], sum);
      for (std::size_t i = 1; i < group.size(); ++i) {
        const Message message = chunk_of(arrays[i]);
        count(group[i], group[owner], message);
        add(sum, message);
      }
      for (const std::int32_t rank : group) count(group[owner], rank, sum);
      whole.insert(whole.end(), sum.begin(), sum.end());
      begin += chunks[owner];
    }
    for (const std::int32_t rank : group) write(rank, target_box(rank), whole);
  }

  const Step& step_;
  const TensorSpec& tensor_;
  const Shards<T>& sources_;
  Slices from_;
  Slices to_;
  std::map<std::int32_t, std::int64_t> source_of_;
  std::map<std::int32_t, std::int64_t> target_of_;
  Shards<T> targets_;
  std::vector<std::vector<int>> writes_;
  std::int64_t crossed_ = 0;
};

}  // namespace

template <class T>
Executed<T> execute(const Step& step, const TensorSpec& tensor, const Shards<T>& shards,
                    const std::vector<std::int32_t>& node_of_rank) {
  return Execution<T>(step, tensor, shards).run(node_of_rank);
}

template <class T>
Executed<T> execute(const reshard::Plan& plan, const TensorSpec& tensor, Shards<T> shards,
                    const std::vector<std::int32_t>& node_of_rank) {
  Executed<T> result{.shards = std::move(shards)};
  for (const Step& step : plan.steps) {
    Executed<T> next = execute(step, tensor, result.shards, node_of_rank);
    result.shards = std::move(next.shards);
    result.crossed += next.crossed;
  }
  return result;
}

#define FORESHARD_INSTANTIATE(T)                                                      \
  template Executed<T> execute<T>(const Step&, const TensorSpec&, const Shards<T>&,   \
                                  const std::vector<std::int32_t>&);                  \
  template Executed<T> execute<T>(const reshard::Plan&, const TensorSpec&, Shards<T>, \
                                  const std::vector<std::int32_t>&);
FORESHARD_INSTANTIATE(float)
FORESHARD_INSTANTIATE(double)
FORESHARD_INSTANTIATE(std::int64_t)
#undef FORESHARD_INSTANTIATE

}  // namespace foreshard::execute
