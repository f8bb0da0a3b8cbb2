#include "sim/search/internal/times.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace foreshard::search {
namespace {

using program::Communication;
using program::Task;

constexpr Seconds kNever = Seconds::from_base(std::numeric_limits<double>::infinity());

bool on_compute(const Task& task) {
  return std::holds_alternative<Kernel>(task.body) ||
         task.stream == lower::stream(lower::kComputeStream);
}

Groups groups_of(const Communication& what, const std::vector<MeshAxis>& mesh) {
  const auto* group = std::get_if<program::AxisGroup>(&what.group);
  FORESHARD_CHECK(group != nullptr && group->coordinates.empty());
  return {mesh, group->axes};
}

std::int64_t ranks_of(const std::vector<MeshAxis>& mesh) {
  std::int64_t ranks = 1;
  for (const MeshAxis& axis : mesh) ranks *= axis.size;
  return ranks;
}

// Of each communication; nothing of other tasks.
Result<std::vector<Spread>> communication_times(const program::Block& block,
                                                const std::vector<MeshAxis>& mesh,
                                                const Kinds& kinds, Times& times) {
  std::vector<Spread> result;
  for (const Task& task : block.tasks) {
    Spread spread;
    if (const auto* what = std::get_if<Communication>(&task.body)) {
      const auto found =
          times.collective(what->kind, what->bytes, groups_of(*what, mesh), ranks_of(mesh), kinds);
      if (!found) return found.error();
      spread = *found;
    }
    result.push_back(spread);
  }
  return result;
}

// Each task as early as its stream and its dependencies allow.
class Schedule {
 public:
  explicit Schedule(std::size_t streams) : free_(streams) {}

  template <class TimeOf>
  void run(const program::Block& block, TimeOf time_of) {
    std::vector<Seconds> end(block.tasks.size());
    for (std::size_t i = 0; i < block.tasks.size(); ++i) {
      const Task& task = block.tasks[i];
      Seconds start = begin_;
      for (const std::int32_t before : task.after)
        start = std::max(start, end[static_cast<std::size_t>(before)]);
      if (!task.stream.valid()) {
        end[i] = start;
        continue;
      }
      Seconds& free = free_[task.stream.index()];
      end[i] = std::max(start, free) + time_of(i);
      free = end[i];
    }
  }
  // The end of all its tasks.
  Seconds end() const { return *std::ranges::max_element(free_); }
  Seconds compute_end() const { return free_[lower::kComputeStream]; }

 private:
  Seconds begin_;
  std::vector<Seconds> free_;
};

}  // namespace

Line line_of(const std::vector<MeshAxis>& mesh, Axis axis) {
  Line line;
  const auto index = static_cast<std::size_t>(axis);
  for (std::size_t i = 0; i < index; ++i) line.stride *= mesh[i].size;
  line.size = mesh[index].size;
  return line;
}

Groups::Groups(const std::vector<MeshAxis>& mesh, const std::vector<Axis>& axes) {
  for (const Axis axis : axes) {
    const Line line = search::line_of(mesh, axis);
    if (line.size == 1) continue;
    size_ *= line.size;
    const bool continues =
        !lines_.empty() && lines_.back().stride * lines_.back().size == line.stride;
    if (continues)
      lines_.back().size *= line.size;
    else
      lines_.push_back(line);
  }
}

// A group's first rank has coordinate 0 on each line: the group's number with these digits put in.
std::int64_t Groups::rank(std::int64_t group, std::int64_t i) const {
  std::int64_t first = group;
  std::int64_t offset = 0;
  for (const Line& line : lines_) {
    first = first / line.stride * line.stride * line.size + first % line.stride;
    offset += i % line.size * line.stride;
    i /= line.size;
  }
  return first + offset;
}

Seconds Times::kernel(const Kernel& kernel, std::int32_t kind) {
  const auto [known, added] = kernels_.try_emplace({kernel, kind});
  if (added) {
    const DeviceKind& of = places_.kinds()[static_cast<std::size_t>(kind)];
    known->second = cost_.kernel_time(kernel, of.type) / of.speed;
  }
  return known->second;
}

Spread Times::kernel(const Kernel& kernel, const Kinds& kinds) {
  Spread spread{.slowest = {}, .fastest = kNever};
  for (const std::int32_t kind : kinds) {
    const Seconds time = this->kernel(kernel, kind);
    spread.slowest = std::max(spread.slowest, time);
    spread.fastest = std::min(spread.fastest, time);
  }
  return spread;
}

Result<Seconds> Times::group(program::CollectiveKind kind, Bytes bytes, const Groups& groups,
                             std::int64_t index) {
  std::vector<DeviceId> devices;
  for (std::int64_t i = 0; i < groups.size(); ++i)
    devices.push_back(places_.device(groups.rank(index, i)));
  return cost_.communication_time(kind, bytes, devices);
}

Result<Spread> Times::collective(program::CollectiveKind kind, Bytes bytes, const Groups& groups,
                                 std::int64_t ranks, const Kinds& kinds) {
  auto key = std::tuple(kind, bytes.in_base(), groups, ranks, kinds);
  if (const auto it = collectives_.find(key); it != collectives_.end()) return it->second;
  const bool every_kind = kinds.size() == places_.kinds().size();
  Spread spread{.slowest = {}, .fastest = kNever};
  for (std::int64_t g = 0; g < ranks / groups.size(); ++g) {
    bool of_them = true;
    for (std::int64_t i = 0; i < groups.size() && !every_kind && of_them; ++i)
      of_them = std::ranges::binary_search(kinds, places_.kind_of(groups.rank(g, i)));
    if (!of_them) continue;
    FORESHARD_ASSIGN(const auto time, group(kind, bytes, groups, g));
    spread.slowest = std::max(spread.slowest, time);
    spread.fastest = std::min(spread.fastest, time);
  }
  // Hashed paths differ from one operation to the next: the best case is not known.
  if (places_.cluster().routing() == Routing::kEcmpHash) spread.fastest = Seconds{};
  return collectives_.emplace(std::move(key), spread).first->second;
}

Result<Seconds> Times::slower_end(program::CollectiveKind kind, Bytes bytes, const Groups& groups,
                                  std::int64_t ranks) {
  const auto key = std::tuple(kind, bytes.in_base(), groups, ranks);
  if (const auto it = slower_ends_.find(key); it != slower_ends_.end()) return it->second;
  FORESHARD_ASSIGN(const auto first, group(kind, bytes, groups, 0));
  FORESHARD_ASSIGN(const auto last, group(kind, bytes, groups, ranks / groups.size() - 1));
  return slower_ends_.emplace(key, std::max(first, last)).first->second;
}

Result<Seconds> Times::ends(program::CollectiveKind kind, Bytes bytes, Line line) const {
  return cost_.communication_time(
      kind, bytes, {places_.device(0), places_.device((line.size - 1) * line.stride)});
}

Result<Seconds> Times::transfer(Bytes bytes, Line line, std::int64_t from, std::int64_t to) {
  const std::tuple key{bytes.in_base(), line, from, to};
  if (const auto it = transfers_.find(key); it != transfers_.end()) return it->second;
  FORESHARD_ASSIGN(const auto time, cost_.communication_time(program::CollectiveKind::kSend, bytes,
                                                             {places_.device(from * line.stride),
                                                              places_.device(to * line.stride)}));
  return transfers_.emplace(key, time).first->second;
}

Result<PassTime> pass_time(const program::Block& block, const std::vector<MeshAxis>& mesh,
                           const Kinds& kinds, Times& times) {
  FORESHARD_ASSIGN(const auto found, communication_times(block, mesh, kinds, times));
  const std::size_t streams = lower::streams().size();
  PassTime result;
  Schedule likely(streams);
  const auto slowest = [&](std::size_t i) {
    const auto* kernel = std::get_if<Kernel>(&block.tasks[i].body);
    return kernel == nullptr ? found[i].slowest : times.kernel(*kernel, kinds).slowest;
  };
  likely.run(block, slowest);
  result.first = likely.end();
  likely.run(block, slowest);
  const Seconds second = likely.end();
  likely.run(block, slowest);
  result.next = likely.end() - second;

  result.least = kNever;
  for (const std::int32_t kind : kinds) {
    // Communication that waits for nothing may have begun before the block's first kernel.
    Schedule least(streams);
    least.run(block, [&](std::size_t i) {
      const Task& task = block.tasks[i];
      if (const auto* kernel = std::get_if<Kernel>(&task.body)) return times.kernel(*kernel, kind);
      return on_compute(task) || !task.after.empty() ? found[i].fastest : Seconds{};
    });
    result.least = std::min(result.least, least.compute_end());
    result.least_on_slowest = std::max(result.least_on_slowest, least.compute_end());
  }
  for (const Task& task : block.tasks) {
    if (task.stream.valid()) ++result.launches;
  }
  return result;
}

Result<Seconds> chain_time(const program::Block& block, const std::vector<MeshAxis>& mesh,
                           Times& times) {
  Seconds sum;
  for (const Task& task : block.tasks) {
    const auto* what = std::get_if<Communication>(&task.body);
    if (what == nullptr) continue;
    const auto time =
        times.slower_end(what->kind, what->bytes, groups_of(*what, mesh), ranks_of(mesh));
    if (!time) return time;
    sum += *time;
  }
  return sum;
}

Result<ModelTimes> model_times(const lower::LoweredModel& model, const Kinds& kinds, Times& times) {
  ModelTimes result;
  for (const lower::LoweredBlock* block : model.all()) {
    const auto of = [&](const lower::Pieces& pass) {
      return pass_time(lower::only_block(pass), model.mesh, kinds, times);
    };
    PassTimes& passes = result.emplace_back();
    FORESHARD_ASSIGN(passes.forward, of(block->forward));
    FORESHARD_ASSIGN(passes.backward, of(block->backward));
    if (!block->split) continue;
    FORESHARD_ASSIGN(passes.input, of(block->split->input));
    FORESHARD_ASSIGN(passes.weight, of(block->split->weight));
  }
  return result;
}

}  // namespace foreshard::search
