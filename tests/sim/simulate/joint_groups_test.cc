// Groups over several axes are one group: bytes over links of random layouts of a small mixture
// against a formula that knows nothing of meshes, attributes or propagation. It numbers the
// flattened ranks and divides.
#include <fmt/format.h>

#include "tests/sim/simulate/random_cluster.h"
#include "tests/test.h"

#include "sim/simulate/simulate.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::sim::joint_groups_test {

using program::CollectiveKind;
using program::Communication;
using program::Program;
using program::Purpose;

// Extents that every group of up to 64 ranks, a third of them too, divides.
constexpr std::int64_t kLayers = 2;
constexpr std::int64_t kHidden = 192;
constexpr std::int64_t kSequence = 256;
constexpr std::int64_t kVocabulary = 384;
constexpr std::int64_t kExperts = 8;
constexpr std::int64_t kChosen = 2;
constexpr std::int64_t kWidth = 64;
constexpr double kGradient = 4;  // bytes of an element
constexpr double kParameter = 2;
constexpr double kActivation = 2;

Model mixture() {
  return {.name = "small mixture",
          .layers = kLayers,
          .hidden = kHidden,
          .heads = 4,
          .vocabulary = kVocabulary,
          .sequence = kSequence,
          .norm = Norm::kRmsNorm,
          .activation = Activation::kSwiglu,
          .positions = Positions::kRotary,
          .bias = false,
          .tied_embeddings = false,
          .dropout = false,
          .experts = kExperts,
          .experts_per_token = kChosen,
          .expert_ffn = kWidth,
          .source = ""};
}

struct Drawn {
  Strategy strategy;
  std::int64_t micro_batches = 1;
};

// Ranks that share an expert.
std::int64_t parts_of(const Strategy& s) {
  return s.expert_tensor_parallel == 0 ? s.tensor_parallel : s.expert_tensor_parallel;
}

Drawn drawn_layout(std::mt19937& random) {
  const auto from = [&](std::vector<std::int64_t> values) {
    return values[random() % values.size()];
  };
  while (true) {
    Drawn drawn;
    Strategy& s = drawn.strategy;
    s.tensor_parallel = from({1, 2, 4});
    s.context_parallel = from({1, 2, 4});
    s.data_parallel = from({1, 2, 3, 4, 6, 8});
    s.expert_parallel = from({1, 2, 4, 8});
    s.expert_tensor_parallel = from({0, 1, 2, 4});
    s.zero_stage = from({0, 1, 2, 3});
    s.shard_replicas = from({1, 1, 2});
    s.sequence_parallel = s.tensor_parallel > 1 && random() % 4 > 0;
    if (random() % 4 == 0) s.rank_order = {"data", "tensor", "pipeline"};
    drawn.micro_batches = from({1, 2});
    s.global_batch = drawn.micro_batches * s.data_parallel;
    s.framework.value.vocabulary_multiple = 1;
    s.framework.value.gradient_dtype = DType::kFp32;
    s.framework.value.shards.fp32 = false;
    s.framework.value.shards.experts = random() % 3 > 0;
    // Not drawn: experts split over more ranks than of these have the same tokens.
    if (s.tensor_parallel > 1 && !s.sequence_parallel && parts_of(s) > s.tensor_parallel) continue;
    if (s.devices() <= 32 && faults_in(s, mixture(), s.devices()).empty()) return drawn;
  }
}

std::string words(const Strategy& s) {
  return fmt::format(
      "tensor {}{} context {} data {} expert {} expert-tensor {} ZeRO {}{} replicas {} {}",
      s.tensor_parallel, s.sequence_parallel ? "+sequence" : "", s.context_parallel,
      s.data_parallel, s.expert_parallel, s.expert_tensor_parallel, s.zero_stage,
      s.framework.value.shards.experts ? "" : " without experts", s.shard_replicas,
      s.rank_order.front());
}

using RankSets = std::set<std::set<std::int64_t>>;

// The sets of ranks for which `key` is the same.
template <class Key>
RankSets sets_by(std::int64_t ranks, Key key) {
  std::map<decltype(key(0)), std::set<std::int64_t>> sets;
  for (std::int64_t rank = 0; rank < ranks; ++rank) sets[key(rank)].insert(rank);
  RankSets result;
  for (auto& [value, set] : sets) result.insert(std::move(set));
  return result;
}

// Who is who, from the rank's number alone.
struct Numbers {
  const Strategy& s;
  std::int64_t copies() const { return s.context_parallel * s.data_parallel; }
  std::int64_t tensor(std::int64_t rank) const {
    return s.rank_order.front() == "tensor" ? rank % s.tensor_parallel : rank / copies();
  }
  // Among the context- and data-parallel ranks.
  std::int64_t copy(std::int64_t rank) const {
    return s.rank_order.front() == "tensor" ? rank / s.tensor_parallel : rank % copies();
  }
  std::int64_t set(std::int64_t rank) const { return copy(rank) / (copies() / s.shard_replicas); }
  // Within its set of shards, tensor-parallel ranks fastest.
  std::int64_t flattened(std::int64_t rank) const {
    return tensor(rank) + s.tensor_parallel * (copy(rank) % (copies() / s.shard_replicas));
  }
};

RankSets sets_of(const Program& program, const Communication& what) {
  const auto& axes = std::get<program::AxisGroup>(what.group).axes;
  return sets_by(program.ranks(), [&](std::int64_t rank) {
    std::vector<std::int64_t> outside;
    for (std::size_t axis = 0; axis < program.mesh.size(); ++axis) {
      const std::int64_t size = program.mesh[axis].size;
      if (std::ranges::find(axes, static_cast<std::int32_t>(axis)) == axes.end())
        outside.push_back(rank % size);
      rank /= size;
    }
    return outside;
  });
}

// What one group of `ranks` sends over links.
double over_links(CollectiveKind kind, double bytes, double ranks) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (ranks - 1) * bytes;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return (ranks - 1) * bytes;
    default:
      ADD_FAILURE() << "no other operation is expected";
      return 0;
  }
}

// Bytes over links of a step, by operation and the groups that make it.
using Traffic = std::map<std::pair<CollectiveKind, RankSets>, double>;

void add(Traffic& traffic, CollectiveKind kind, const RankSets& sets, double bytes) {
  const auto ranks = static_cast<double>(sets.begin()->size());
  if (ranks > 1)
    traffic[{kind, sets}] += static_cast<double>(sets.size()) * over_links(kind, bytes, ranks);
}

template <class Wanted>
Traffic traffic_of(const Program& program, Wanted wanted) {
  Traffic traffic;
  for (const program::Call& call : program.roles.at(0).calls)
    for (const program::Task& task : program.blocks[call.block.index()].tasks)
      if (const auto* what = std::get_if<Communication>(&task.body);
          what != nullptr && what->tag != "gradient_norm" && wanted(task, *what))
        add(traffic, what->kind, sets_of(program, *what), call.repeat * what->bytes.in_base());
  return traffic;
}

void expect_equal(const Traffic& found, const Traffic& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (auto one = found.begin(), other = expected.begin(); one != found.end(); ++one, ++other) {
    EXPECT_EQ(one->first, other->first);
    EXPECT_DOUBLE_EQ(one->second, other->second);
  }
}

// Gradients and parameters: of all else over all context- and data-parallel ranks at once, of
// experts over all ranks that hold the same ones.
Traffic expected_of_states(const Drawn& drawn) {
  const Strategy& s = drawn.strategy;
  const Numbers numbers{s};
  const std::int64_t tp = s.tensor_parallel;
  const std::int64_t holders = s.expert_parallel * parts_of(s);
  const double all_else =
      static_cast<double>((2 * kVocabulary * kHidden + kLayers * 4 * kHidden * kHidden) / tp +
                          kLayers * (2 * kHidden + kHidden * kExperts) + kHidden);
  const double experts = static_cast<double>(kLayers * kExperts * 3 * kHidden * kWidth / holders);
  const double rounds = s.zero_stage >= 2 ? static_cast<double>(drawn.micro_batches) : 1;
  Traffic traffic;
  // `kept`: elements that stay whole between their forward and their backward pass.
  const auto add_group = [&](double elements, double kept, auto part) {
    const auto sets = sets_by(
        s.devices(), [&](std::int64_t rank) { return std::pair(numbers.set(rank), part(rank)); });
    if (s.zero_stage == 0)
      return add(traffic, CollectiveKind::kAllReduce, sets, elements * kGradient);
    const auto shards = static_cast<double>(sets.begin()->size());
    add(traffic, CollectiveKind::kReduceScatter, sets, rounds * elements * kGradient);
    // Ranks of other sets that hold the same shard.
    const auto same =
        sets_by(s.devices(), [&](std::int64_t rank) { return numbers.flattened(rank); });
    add(traffic, CollectiveKind::kAllReduce, same, rounds * elements / shards * kGradient);
    // Each of the two passes of a unit gathers its parameters, or the step does so once.
    const auto micro_batches = static_cast<double>(drawn.micro_batches);
    const double gathered = s.zero_stage == 3 ? micro_batches * (2 * elements - kept) : elements;
    add(traffic, CollectiveKind::kAllGather, sets, gathered * kParameter);
  };
  // The backward pass of the head and its norm follows their forward pass at once.
  const double head = static_cast<double>(kVocabulary * kHidden / tp + kHidden);
  add_group(all_else, head, [&](std::int64_t rank) { return numbers.tensor(rank); });
  const auto part = [&](std::int64_t rank) { return numbers.flattened(rank) % holders; };
  if (s.zero_stage == 3 && s.expert_parallel > 1 && !s.framework.value.shards.experts)
    add(traffic, CollectiveKind::kAllReduce, sets_by(s.devices(), part), experts * kGradient);
  else
    add_group(experts, 0, part);
  return traffic;
}

// Tokens of a rank to their experts and back, forward and backward, in one exchange each.
Traffic expected_of_exchanges(const Drawn& drawn) {
  const Strategy& s = drawn.strategy;
  const Numbers numbers{s};
  const std::int64_t parts = parts_of(s);
  const std::int64_t tokens =
      kSequence / s.context_parallel / (s.sequence_parallel ? s.tensor_parallel : 1);
  Traffic traffic;
  add(traffic, CollectiveKind::kAllToAll,
      sets_by(s.devices(),
              [&](std::int64_t rank) {
                const std::int64_t flattened = numbers.flattened(rank);
                return std::tuple(numbers.set(rank), flattened / (s.expert_parallel * parts),
                                  flattened % parts);
              }),
      static_cast<double>(4 * kLayers * drawn.micro_batches * tokens * kChosen * kHidden) *
          kActivation);
  return traffic;
}

// Ranks that share an expert gather the tokens which each has been sent, and scatter sums of what
// they make of them; without sequence parallelism all have been sent the same, and add up.
Traffic expected_among_parts(const Drawn& drawn) {
  const Strategy& s = drawn.strategy;
  const Numbers numbers{s};
  const std::int64_t parts = parts_of(s);
  const auto sets = sets_by(s.devices(), [&](std::int64_t rank) {
    return std::pair(numbers.set(rank), numbers.flattened(rank) / parts);
  });
  const std::int64_t tokens =
      kSequence / s.context_parallel / (s.sequence_parallel ? s.tensor_parallel : 1);
  const double held =
      static_cast<double>(kLayers * drawn.micro_batches * tokens * kChosen * kHidden) * kActivation;
  Traffic traffic;
  if (s.sequence_parallel || s.tensor_parallel == 1) {
    const auto ranks = static_cast<double>(parts);
    add(traffic, CollectiveKind::kAllGather, sets, 2 * ranks * held);
    add(traffic, CollectiveKind::kReduceScatter, sets, 2 * ranks * held);
  } else {
    add(traffic, CollectiveKind::kAllReduce, sets, 2 * held);
  }
  return traffic;
}

// The same finish of every task on both engines.
void expect_engines_agree(const Drawn& drawn, const Program& program, std::mt19937& random) {
  const ClusterView cluster =
      random_cluster(random, drawn.strategy.devices(), {.routing = Routing::kEcmpHash});
  SimulateOptions options{.granularity = Granularity::kStepwise, .timeline = true};
  const auto ours = simulate(cluster, program, comm::ideal_parameters(), options);
  options.engine = EngineKind::kSimgrid;
  const auto theirs = simulate(cluster, program, comm::ideal_parameters(), options);
  ASSERT_TRUE(ours && theirs);
  ASSERT_EQ(ours->timeline.size(), theirs->timeline.size());
  for (std::size_t i = 0; i < ours->timeline.size(); ++i) {
    const double expected = theirs->timeline[i].finish.in_base();
    ASSERT_NEAR(ours->timeline[i].finish.in_base(), expected, 1e-6 * expected);
  }
}

// All 500 layouts where FORESHARD_ALL_SEEDS is set; else a few dozen.
TEST(JointGroups, CarryTheBytesOfTheirFormula) {
  const unsigned seeds = std::getenv("FORESHARD_ALL_SEEDS") != nullptr ? 500 : 24;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(seed);
    const Drawn drawn = drawn_layout(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, words(drawn.strategy)));
    const auto program = value_of(lower::lower(mixture(), drawn.strategy, {.launch_time = 1_us}));
    ASSERT_EQ(message_of(program::verify(program)), "accepted");
    expect_equal(traffic_of(program,
                            [](const auto&, const Communication& what) {
                              return what.purpose == Purpose::kData;
                            }),
                 expected_of_states(drawn));
    expect_equal(traffic_of(program,
                            [](const auto&, const Communication& what) {
                              return what.purpose == Purpose::kExpert;
                            }),
                 expected_of_exchanges(drawn));
    const std::set<std::string> slots{"dispatch",     "arrived",  "sorted",
                                      "experts_down", "unsorted", "returned"};
    expect_equal(traffic_of(program,
                            [&](const program::Task& task, const Communication& what) {
                              if (what.purpose != Purpose::kTensor) return false;
                              std::string of = task.name.substr(task.name.find('.') + 1);
                              if (of.starts_with("d.")) of = of.substr(2);
                              return slots.contains(of);
                            }),
                 expected_among_parts(drawn));
    expect_engines_agree(drawn, program, random);
    if (HasFailure()) return;
  }
}

}  // namespace foreshard::sim::joint_groups_test
