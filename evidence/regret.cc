#include "evidence/regret.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>
#include <utility>

#include "evidence/training.h"

#include "sim/search/search.h"
#include "validate/tables/table.h"

namespace foreshard::accuracy {
namespace {

// One strategy of a group.
struct Measured {
  Strategy strategy;
  std::string id;        // of its first row
  double measured = 0;   // mean of its rows, in seconds
  double simulated = 0;  // prediction of its first row, in seconds
  std::int64_t rows = 0;
};

struct Group {
  const Outcome* first;
  std::vector<Measured> strategies{};
};

// The cluster and the model of a study, as their part of its text.
std::string_view question_of(std::string_view study) {
  const auto begin = study.find("\ncluster:");
  return study.substr(begin, study.find("\nstrategy:") - begin);
}

// Rows with equal keys belong to one group.
auto key_of(const Outcome& row) {
  const Strategy& strategy = *row.strategy;
  return std::tuple(row.file, std::string(question_of(row.study)), strategy.framework->name,
                    strategy.global_batch, strategy.precision, strategy.quantization);
}

bool is_same(const Strategy& a, const Strategy& b) {
  return search::knobs_of(a) == search::knobs_of(b) &&
         words_of_recomputation(a) == words_of_recomputation(b) &&
         words_of_extras(a) == words_of_extras(b);
}

void add(const Outcome& row, Group& group) {
  const Strategy& strategy = *row.strategy;
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
    if (row.status != RowStatus::kOk || row.quantity != Quantity::kTime || !row.strategy ||
        !row.pair() || row.strategy->offloads())
      continue;
    const auto [place, added] = known.try_emplace(key_of(row), groups.size());
    if (added) groups.push_back({.first = &row});
    add(row, groups[place->second]);
  }
  std::erase_if(groups,
                [](const Group& group) { return group.strategies.size() < kFewestStrategies; });
  return groups;
}

std::optional<double> tau_of(const Group& group) {
  std::vector<Pair> pairs;
  for (const Measured& one : group.strategies)
    pairs.push_back({one.measured, one.simulated, {}, {}});
  return kendall_tau(pairs);
}

Result<RegretGroup> searched(const Group& group, const Context& context) {
  const Outcome& first = *group.first;
  FORESHARD_ASSIGN(const auto study, study_of(first.id, first.study, context, false));
  const Strategy& like = *first.strategy;
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
    return Error{Error::Code::kInfeasible, "nothing of " + first.file + " can be routed"};
  const Measured& chosen =
      group.strategies[static_cast<std::size_t>(found.simulated.front().order)];
  const Measured& fastest = *std::ranges::min_element(group.strategies, {}, &Measured::measured);
  const Measured& least = *std::ranges::min_element(group.strategies, {}, &Measured::simulated);
  return RegretGroup{
      .file = first.file,
      .model = study.model.name,
      .device = (*study.cluster.node)->device->name,
      .devices = study.cluster.device_count(),
      .batch = like.global_batch,
      .sequence = study.model.sequence,
      .precision =
          std::string(like.quantization == Quantization::kNone ? name_of(like.precision)
                                                               : yaml::name_of(like.quantization)),
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
