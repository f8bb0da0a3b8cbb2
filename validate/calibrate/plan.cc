#include "validate/calibrate/plan.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/quantity.h"
#include "base/text.h"

#include "sim/compute/operator_time.h"
#include "strategies/program/ir/group.h"
#include "strategies/program/ir/program.h"
#include "strategies/program/ir/verify.h"
#include "validate/calibrate/kernel_fit.h"

namespace foreshard::calibrate {
namespace {

using program::BlockId;
using program::Call;
using program::CollectiveKind;
using program::Communication;
using program::Program;
using program::Task;

constexpr std::int64_t kFewestRounds = 2;
constexpr std::int64_t kMostRounds = 32;
constexpr Bytes kSmallestLadder = 4_KiB;
constexpr unsigned kSeed = 20240607;

bool is_transfer(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
}

// A kind comprises the kernels that a fit describes with the same numbers.
std::string kind_of(const Gemm& g) {
  return fmt::format("gemm {} {}", name_of(g.dtype), g.accumulate);
}
std::string kind_of(const Attention& a) {
  return fmt::format("attention {} {} {} {} {} {} {}", name_of(a.dtype), a.head_dim, a.value_dim,
                     a.causal, a.window, a.sample, a.direction == Direction::kForward);
}
std::string kind_of(const Pass& p) {
  return fmt::format("{} {} {}", traffic_of(p.kind).name, name_of(p.dtype), p.state_bytes);
}
std::string kind_of(const Kernel& kernel) {
  return std::visit([](const auto& k) { return kind_of(k); }, kernel);
}

// Kernels with one extent doubled or halved.
std::vector<Kernel> neighbours_of(const Gemm& g) {
  std::vector<Kernel> result;
  for (std::int64_t Gemm::*extent : {&Gemm::m, &Gemm::n, &Gemm::k}) {
    Gemm more = g;
    more.*extent *= 2;
    result.emplace_back(more);
    Gemm less = g;
    less.*extent /= 2;
    if (less.*extent >= 1) result.emplace_back(less);
  }
  return result;
}
std::vector<Kernel> neighbours_of(const Attention& a) {
  std::vector<Kernel> result;
  Attention more = a;
  more.batch *= 2;
  result.emplace_back(more);
  Attention less = a;
  less.query_length /= 2;
  less.key_length /= 2;
  if (less.query_length >= 1 && less.key_length >= 1) result.emplace_back(less);
  return result;
}
std::vector<Kernel> neighbours_of(const Pass& p) {
  std::vector<Kernel> result;
  Pass more = p;
  more.rows *= 2;
  result.emplace_back(more);
  for (const std::int64_t part : {2, 8}) {
    Pass less = p;
    less.rows /= part;
    if (less.rows >= 1) result.emplace_back(less);
  }
  return result;
}

// One collective operation, run by all of its groups at the same time.
struct Operation {
  CollectiveKind kind;
  std::vector<std::vector<std::int32_t>> groups;  // a transfer has one: {sender, receiver}
  std::vector<program::Transfer> transfers;
  std::vector<std::int32_t> roots;
  DType dtype;
  program::Purpose purpose;
  auto operator<=>(const Operation&) const = default;
};

class Planner {
 public:
  Planner(const std::vector<Program>& programs, const PlanOptions& options)
      : programs_(programs), options_(options) {
    if (options.device) times_.emplace(*options.device);
  }

  Result<Program> run() {
    FORESHARD_TRY(gather());
    add_neighbours();
    add_informative_products();
    add_ladders();
    write_blocks();
    if (plan_.blocks.empty())
      return Error{Error::Code::kInvalidInput,
                   "nothing to measure: the Programs have neither kernels nor communication"};
    write_calls();
    FORESHARD_TRY(program::verify(plan_));
    return std::move(plan_);
  }

 private:
  Status gather() {
    const auto fault = [](const std::string& why) {
      return Error{Error::Code::kInvalidInput, why};
    };
    if (programs_.empty()) return fault("no Program to measure for");
    const Program& first = programs_.front();
    for (const Program& program : programs_) {
      if (program.ranks() != first.ranks())
        return fault(
            fmt::format("'{}' has {} ranks and '{}' {}; plan for one number of ranks at a "
                        "time",
                        first.name, first.ranks(), program.name, program.ranks()));
      if (program.device_of_rank != first.device_of_rank)
        return fault(fmt::format("'{}' and '{}' place their ranks on devices differently",
                                 first.name, program.name));
      for (const program::Role& role : program.roles) {
        std::set<std::int32_t> blocks;
        for (const Call& call : role.calls)
          if (blocks.insert(static_cast<std::int32_t>(call.block.index())).second)
            for (const Task& task : program.blocks[call.block.index()].tasks)
              add(program, role, task);
      }
    }
    std::vector<std::string> names;
    for (const Program& program : programs_)
      if (std::ranges::find(names, program.name) == names.end()) names.push_back(program.name);
    plan_.name = "microbenchmarks: " + join(names, "; ");
    plan_.mesh = {{"rank", first.ranks()}};
    plan_.device_of_rank = first.device_of_rank;
    plan_.streams = {{"compute"}};
    plan_.launch_time = first.launch_time;
    plan_.launch_time_of_rank = first.launch_time_of_rank;
    return {};
  }

  void add(const Program& program, const program::Role& role, const Task& task) {
    if (const auto* kernel = std::get_if<Kernel>(&task.body)) {
      Kernel single = *kernel;
      if (auto* pass = std::get_if<Pass>(&single)) {
        if (pass->rows == 0) return;
        pass->launches = 1;  // a replay launches it once
      }
      kernels_.insert(single);
      return;
    }
    const auto* what = std::get_if<Communication>(&task.body);
    if (what == nullptr) return;
    if (!is_transfer(what->kind)) {
      Operation operation{.kind = what->kind,
                          .groups = groups_of(program, what->group),
                          .transfers = what->transfers,
                          .roots = what->roots,
                          .dtype = what->dtype,
                          .purpose = what->purpose};
      if (!operation.groups.empty()) sizes_[std::move(operation)].insert(what->bytes);
      return;
    }
    if (what->kind == CollectiveKind::kReceive) return;  // the matching send has the same data
    for (const std::int32_t rank : role.ranks) {
      const std::pair pair{rank, *program::peer_of(program, what->group, rank)};
      if (!pairs_.contains(pair) && std::ssize(pairs_) >= options_.most_pairs) return;
      pairs_.insert(pair);
      sizes_[{.kind = CollectiveKind::kSend,
              .groups = {{pair.first, pair.second}},
              .transfers = {},
              .roots = {},
              .dtype = what->dtype,
              .purpose = what->purpose}]
          .insert(what->bytes);
    }
  }

  // Members of each instance of the group that has several members, ascending.
  static std::vector<std::vector<std::int32_t>> groups_of(const Program& program,
                                                          const program::Group& group) {
    std::map<std::int32_t, std::vector<std::int32_t>> by_label;
    const auto labels = program::labels_of(program, group);
    for (std::size_t rank = 0; rank < labels.size(); ++rank)
      if (labels[rank] >= 0) by_label[labels[rank]].push_back(static_cast<std::int32_t>(rank));
    std::vector<std::vector<std::int32_t>> groups;
    for (auto& [label, members] : by_label)
      if (members.size() > 1) groups.push_back(std::move(members));
    std::ranges::sort(groups);
    return groups;
  }

  Seconds time_of(const Kernel& kernel) { return times_ ? (*times_)(kernel) : 1_ms; }

  void add_neighbours() {
    std::map<std::string, std::vector<Kernel>> kinds;
    for (const Kernel& kernel : kernels_) kinds[kind_of(kernel)].push_back(kernel);
    for (const auto& [kind, members] : kinds) {
      std::int64_t sizes = std::ssize(members);
      for (const Kernel& member : members) {
        if (sizes >= options_.fewest) break;
        for (const Kernel& near :
             std::visit([](const auto& k) { return neighbours_of(k); }, member)) {
          if (sizes >= options_.fewest) break;
          if (bytes_of(near) > options_.largest || time_of(near) > options_.longest) continue;
          sizes += kernels_.insert(near).second ? 1 : 0;
        }
      }
    }
  }

  void add_informative_products() {
    if (!options_.device) return;
    std::vector<Gemm> known;
    for (const Kernel& kernel : kernels_)
      if (const auto* gemm = std::get_if<Gemm>(&kernel)) known.push_back(*gemm);
    for (const Gemm& gemm : informative_products(*options_.device, known, [&](const Gemm& one) {
           return bytes_of(one) <= options_.largest && time_of(one) <= options_.small;
         }))
      kernels_.insert(gemm);
  }

  // Adds sizes at a fixed factor below the largest, down to 4 KiB, in whole elements per member.
  void add_ladders() {
    for (auto& [operation, sizes] : sizes_) {
      if (operation.kind == CollectiveKind::kExchange) continue;
      std::int64_t members = 1;
      for (const auto& group : operation.groups) members = std::lcm(members, std::ssize(group));
      const Bytes whole = static_cast<double>(members) * size_of(operation.dtype);
      const auto factor = static_cast<double>(options_.ladder);
      for (Bytes size = *sizes.rbegin() / factor; size >= kSmallestLadder; size = size / factor)
        sizes.insert(std::max(1.0, std::round(size / whole)) * whole);
    }
  }

  void write_blocks() {
    for (const Kernel& kernel : kernels_)
      add_block(foreshard::describe(kernel), kernel, all_ranks(), time_of(kernel));
    std::set<std::string> names;
    for (const auto& [operation, sizes] : sizes_) {
      for (const Bytes size : sizes) {
        Communication what{.kind = operation.kind,
                           .group = program::RankGroups{operation.groups},
                           .bytes = size,
                           .dtype = operation.dtype,
                           .purpose = operation.purpose,
                           .tag = {},
                           .transfers = operation.transfers,
                           .roots = operation.roots};
        std::vector<std::int32_t> ranks;
        for (const auto& group : operation.groups)
          ranks.insert(ranks.end(), group.begin(), group.end());
        const std::string name = unused(name_of(operation, size), names);
        if (operation.kind != CollectiveKind::kSend) {
          add_block(name, what, ranks, 1_ms);
          continue;
        }
        what.tag = name;
        what.group = program::AxisPeer{0, ranks[1]};
        add_block("send " + name, what, {ranks[0]}, 1_ms);
        what.kind = CollectiveKind::kReceive;
        what.group = program::AxisPeer{0, ranks[0]};
        add_block("receive " + name, what, {ranks[1]}, 0_s);
        pair_with_last();
      }
    }
  }

  static std::string name_of(const Operation& operation, Bytes size) {
    std::string name = fmt::format("{} {} {}", program::name_of_operation(operation.kind),
                                   format_exact(size), foreshard::name_of(operation.dtype));
    const auto& members = operation.groups.front();
    name += fmt::format(" of ranks {} to {}", members.front(), members.back());
    return name;
  }
  static std::string unused(std::string name, std::set<std::string>& names) {
    const std::string plain = name;
    for (int n = 2; !names.insert(name).second; ++n) name = fmt::format("{} ({})", plain, n);
    return name;
  }

  std::vector<std::int32_t> all_ranks() const {
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(plan_.ranks()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  void add_block(const std::string& name, const program::TaskBody& body,
                 const std::vector<std::int32_t>& ranks, Seconds time) {
    const BlockId block{static_cast<std::int32_t>(plan_.blocks.size())};
    plan_.blocks.push_back({.name = name,
                            .tasks = {{.name = name,
                                       .body = body,
                                       .stream = program::StreamId{0},
                                       .after = {},
                                       .optimizer = false}}});
    items_.push_back({.calls = {}, .time = time});
    for (const std::int32_t rank : ranks) items_.back().calls[rank].push_back(block);
  }
  // Merges the last two items, the two ends of one transfer.
  void pair_with_last() {
    Item last = std::move(items_.back());
    items_.pop_back();
    for (auto& [rank, blocks] : last.calls) items_.back().calls[rank] = std::move(blocks);
  }

  void write_calls() {
    Seconds once;
    for (const Item& item : items_) once += item.time;
    const auto rounds =
        std::clamp(static_cast<std::int64_t>(options_.step / once), kFewestRounds, kMostRounds);
    std::vector<std::size_t> order(items_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<std::vector<Call>> calls(static_cast<std::size_t>(plan_.ranks()));
    std::mt19937 random(kSeed);
    for (std::int64_t round = 0; round < rounds; ++round) {
      // std::shuffle's result differs between libraries; this one's does not.
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
      for (const std::size_t i : order)
        for (const auto& [rank, blocks] : items_[i].calls)
          for (const BlockId block : blocks)
            calls[static_cast<std::size_t>(rank)].push_back({.block = block, .after = {}});
    }
    // Ranks with the same calls share a role.
    std::map<std::vector<std::size_t>, std::size_t> roles;
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      std::vector<std::size_t> key;
      for (const Call& call : calls[rank]) key.push_back(call.block.index());
      const auto [place, is_new] = roles.try_emplace(std::move(key), plan_.roles.size());
      if (is_new)
        plan_.roles.push_back({.name = fmt::format("role {}", plan_.roles.size()),
                               .ranks = {},
                               .calls = std::move(calls[rank]),
                               .memory = {}});
      plan_.roles[place->second].ranks.push_back(static_cast<std::int32_t>(rank));
    }
  }

  struct Item {
    std::map<std::int32_t, std::vector<BlockId>> calls;  // rank -> blocks
    Seconds time;
  };

  const std::vector<Program>& programs_;
  const PlanOptions& options_;
  std::optional<CachedOperatorTime> times_;
  std::set<Kernel> kernels_;
  std::map<Operation, std::set<Bytes>> sizes_;
  std::set<std::pair<std::int32_t, std::int32_t>> pairs_;
  std::vector<Item> items_;
  Program plan_;
};

}  // namespace

Result<program::Program> microbenchmarks(const std::vector<program::Program>& programs,
                                         const PlanOptions& options) {
  return Planner(programs, options).run();
}

namespace {

constexpr std::int64_t kSmallest = 16;  // rows of 16 elements are aligned in any dtype
constexpr std::int64_t kLargest = 8192;
constexpr double kEnough = kTold / 2;    // deviation / spread
constexpr double kNearby = 0.5;          // largest change of a logarithm
constexpr double kLeastNarrowed = 0.01;  // fraction of the variance; a smaller gain is ignored
constexpr std::size_t kMostProducts = 32;

struct Proposal {
  Gemm gemm;
  std::vector<double> slopes;
};

std::vector<std::int64_t> extents() {
  std::vector<std::int64_t> result;
  for (std::int64_t extent = kSmallest; extent <= kLargest; extent *= 2) result.push_back(extent);
  return result;
}

}  // namespace

std::vector<Gemm> informative_products(const DeviceType& start, const std::vector<Gemm>& known,
                                       const std::function<bool(const Gemm&)>& fits) {
  if (known.empty()) return {};
  DeviceType device = start;
  const auto numbers =
      numbers_of(device, KernelFamily::kGemm, std::vector<Kernel>(known.begin(), known.end()));
  // Influence of each number on the time that is certain nearby: the lesser of the slopes above and
  // below its value, 0 where their signs differ.
  const auto slopes = [&](const Gemm& gemm) {
    const auto time = [&] { return std::log(model_time_of(gemm, device).total().in_base()); };
    const double now = time();
    std::vector<double> result;
    for (const LogNumber& number : numbers) {
      const double step = std::min(number.spread, kNearby);
      const auto slope = [&](double by) {
        number.set(std::exp(number.start() + by));
        return (time() - now) / by;
      };
      const double up = slope(step);
      const double down = slope(-step);
      number.set(number.value);
      result.push_back(up * down > 0 ? std::copysign(std::min(std::abs(up), std::abs(down)), up)
                                     : 0);
    }
    return result;
  };

  Knowledge knowledge(numbers);
  std::set<DType> dtypes;
  for (const Gemm& gemm : known) {
    knowledge.add(slopes(gemm));
    dtypes.insert(gemm.dtype);
  }
  std::vector<Proposal> candidates;
  for (const DType dtype : dtypes)
    for (const std::int64_t m : extents())
      for (const std::int64_t n : extents())
        for (const std::int64_t k : extents()) {
          const Gemm gemm{.m = m, .n = n, .k = k, .dtype = dtype};
          if (fits(gemm) && std::ranges::find(known, gemm) == known.end())
            candidates.push_back({gemm, slopes(gemm)});
        }

  std::vector<Gemm> result;
  std::set<std::size_t> hopeless;
  while (result.size() < kMostProducts) {
    std::optional<std::size_t> vaguest;
    const auto left = [&](std::size_t i) { return knowledge.deviation(i) / numbers[i].spread; };
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (!hopeless.contains(i) && left(i) > kEnough && (!vaguest || left(i) > left(*vaguest)))
        vaguest = i;
    if (!vaguest) break;
    const auto narrowed = [&](const Proposal& candidate) {
      return knowledge.narrowed_by(candidate.slopes, *vaguest);
    };
    const auto best = std::ranges::max_element(candidates, {}, narrowed);
    if (best == candidates.end() || narrowed(*best) < kLeastNarrowed) {
      hopeless.insert(*vaguest);
      continue;
    }
    knowledge.add(best->slopes);
    result.push_back(best->gemm);
    candidates.erase(best);
  }
  return result;
}

}  // namespace foreshard::calibrate
