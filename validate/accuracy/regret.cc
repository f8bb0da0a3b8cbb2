#include "validate/accuracy/regret.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>
#include <utility>

#include "base/yaml/loader.h"

#include "sim/search/search.h"
#include "sim/study/study.h"
#include "validate/accuracy/table.h"

namespace foreshard::accuracy {
namespace {

struct Measured {
  Strategy strategy;
  std::string id;
  double measured = 0;  // mean of its rows, in seconds
  double simulated = 0;
  std::int64_t rows = 0;
};

struct Group {
  const Outcome* first;
  std::vector<Measured> strategies{};
};

auto key_of(const Outcome& row) {
  const Setting& setting = *row.setting;
  const Model& model = setting.model;
  const Strategy& strategy = setting.strategy;
  const ClusterRequest& cluster = setting.cluster;
  return std::tuple(row.file, model.name,
                    std::tuple(model.layers, model.hidden, model.heads, model.kv_heads, model.ffn,
                               model.vocabulary, model.experts, model.sequence),
                    strategy.framework->name, strategy.global_batch, strategy.precision,
                    strategy.quantization,
                    std::tuple(cluster.device, cluster.gpus, cluster.gpus_per_node, cluster.node,
                               cluster.internode_per_gpu.value_or(BytesPerSecond{}).in_base()));
}

bool is_same(const Strategy& a, const Strategy& b) {
  return search::knobs_of(a) == search::knobs_of(b) &&
         words_of_recomputation(a) == words_of_recomputation(b) &&
         words_of_extras(a) == words_of_extras(b);
}

void add(const Outcome& row, Group& group) {
  const Strategy& strategy = row.setting->strategy;
  auto known = std::ranges::find_if(
      group.strategies, [&](const Measured& one) { return is_same(one.strategy, strategy); });
  if (known == group.strategies.end())
    known = group.strategies.insert(
        known, {.strategy = strategy, .id = row.id, .simulated = *row.predicted});
  const auto before = static_cast<double>(known->rows++);
  known->measured = (known->measured * before + *row.measured) / (before + 1);
}

std::vector<Group> groups_of(const std::vector<Outcome>& rows) {
  std::vector<Group> groups;
  std::map<decltype(key_of(rows.front())), std::size_t> known;
  for (const Outcome& row : rows) {
    if (row.status != RowStatus::kOk || row.quantity != Quantity::kTime || !row.setting ||
        !row.pair() || row.setting->strategy.offloads())
      continue;
    const auto [place, added] = known.try_emplace(key_of(row), groups.size());
    if (added) groups.push_back({.first = &row});
    add(row, groups[place->second]);
  }
  std::erase_if(groups,
                [](const Group& group) { return group.strategies.size() < kFewestStrategies; });
  return groups;
}

Result<study::LoadedStudy> study_of(const Setting& setting, const Context& context) {
  yaml::Loader loader({.catalogue = context.catalogue});
  FORESHARD_ASSIGN(auto cluster, cluster_for(setting.cluster, loader));
  FORESHARD_ASSIGN(auto pool, study::pool_of(cluster, {}, loader));
  return study::LoadedStudy{.name = setting.model.name,
                            .description = {},
                            .cluster = std::move(cluster),
                            .model = setting.model,
                            .graph = {},
                            .strategy = setting.strategy,
                            .communication = context.communication,
                            .errors = context.errors,
                            .disturbances = {},
                            .pool = std::move(pool),
                            .train = {},
                            .inputs = {},
                            .loader = std::move(loader)};
}

std::optional<double> tau_of(const Group& group) {
  std::vector<Pair> pairs;
  for (const Measured& one : group.strategies)
    pairs.push_back({one.measured, one.simulated, {}, {}});
  return kendall_tau(pairs);
}

Result<RegretGroup> searched(const Group& group, const Context& context) {
  const Setting& setting = *group.first->setting;
  FORESHARD_ASSIGN(const auto study, study_of(setting, context));
  std::vector<Strategy> strategies;
  for (const Measured& one : group.strategies) strategies.push_back(one.strategy);
  FORESHARD_ASSIGN(const auto found,
                   search::search_among(study, strategies,
                                        {.simulate = 1,
                                         .certify = std::numeric_limits<std::int64_t>::max(),
                                         .front = 0,
                                         .threads = 1,
                                         .all_fit = true}));
  if (found.simulated.empty())
    return Error{Error::Code::kInfeasible, "nothing of " + group.first->file + " can be routed"};
  const Measured& chosen =
      group.strategies[static_cast<std::size_t>(found.simulated.front().order)];
  const Measured& fastest = *std::ranges::min_element(group.strategies, {}, &Measured::measured);
  const Measured& least = *std::ranges::min_element(group.strategies, {}, &Measured::simulated);
  return RegretGroup{
      .file = group.first->file,
      .model = setting.model.name,
      .device = setting.cluster.device,
      .devices = setting.cluster.gpus,
      .batch = setting.strategy.global_batch,
      .sequence = setting.model.sequence,
      .precision = std::string(setting.strategy.quantization == Quantization::kNone
                                   ? name_of(setting.strategy.precision)
                                   : yaml::name_of(setting.strategy.quantization)),
      .strategies = std::ssize(group.strategies),
      .simulated = std::ssize(found.simulated),
      .certified = found.certified,
      .chosen = chosen.id,
      .fastest = fastest.id,
      .simulates = least.id,
      .regret_pct = 100 * (chosen.measured / fastest.measured - 1),
      .tau = tau_of(group),
      .slower_pct = 100 * (found.simulated.front().step.in_base() / least.simulated - 1)};
}

MeanRegret mean_of(const std::vector<RegretGroup>& groups) {
  MeanRegret mean{.groups = std::ssize(groups)};
  double tau = 0;
  std::int64_t ranked = 0;
  for (const RegretGroup& group : groups) {
    mean.mean_pct += group.regret_pct / static_cast<double>(mean.groups);
    mean.worst_pct = std::max(mean.worst_pct, group.regret_pct);
    if (!group.tau) continue;
    ++ranked;
    tau += *group.tau;
  }
  if (ranked > 0) mean.tau = tau / static_cast<double>(ranked);
  return mean;
}

}  // namespace

Result<Regret> regret_of(const std::vector<Outcome>& rows, const Context& context, int threads) {
  const std::vector<Group> groups = groups_of(rows);
  std::vector<std::optional<Result<RegretGroup>>> found(groups.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < groups.size(); i = next++)
      found[i] = searched(groups[i], context);
  };
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
    work();
  }
  Regret regret;
  std::map<std::string, std::vector<RegretGroup>> files;
  for (auto& one : found) {
    FORESHARD_ASSIGN(auto group, *std::move(one));
    files[group.file].push_back(group);
    regret.groups.push_back(std::move(group));
  }
  for (const auto& [file, members] : files) regret.files[file] = mean_of(members);
  regret.overall = mean_of(regret.groups);
  return regret;
}

}  // namespace foreshard::accuracy
