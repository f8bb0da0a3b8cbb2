// Eliminates variables from a problem of choices (eliminate.h), for integer.cc and solve.cc. Costs
// have the problem's unit.
#include "sim/search/graph/eliminate.h"

#include <algorithm>
#include <set>
#include <utility>

namespace foreshard::search {
namespace {

// Runs through all combinations of options of a scope's variables, the last one fastest, and tracks
// their positions in the tables of the factors.
class Odometer {
 public:
  Odometer(const std::vector<std::size_t>& scope, const std::vector<std::size_t>& options,
           const std::vector<const CostFactor*>& factors)
      : digits_(scope.size()), places_(factors.size()) {
    for (const std::size_t variable : scope) sizes_.push_back(options[variable]);
    for (const CostFactor* factor : factors) {
      std::vector<std::size_t> strides(scope.size());
      std::size_t stride = 1;
      for (std::size_t i = factor->scope.size(); i-- > 0;) {
        const auto at = std::ranges::find(scope, factor->scope[i]) - scope.begin();
        strides[static_cast<std::size_t>(at)] = stride;
        stride *= options[factor->scope[i]];
      }
      strides_.push_back(std::move(strides));
    }
  }

  std::size_t place(std::size_t factor) const { return places_[factor]; }

  // Advances the digits before `last` by one; digit `last` stays 0.
  void next(std::size_t last) {
    for (std::size_t d = last; d-- > 0;) {
      for (std::size_t f = 0; f < places_.size(); ++f) places_[f] += strides_[f][d];
      if (++digits_[d] < sizes_[d]) return;
      for (std::size_t f = 0; f < places_.size(); ++f) places_[f] -= sizes_[d] * strides_[f][d];
      digits_[d] = 0;
    }
  }
  std::size_t stride_of_last(std::size_t factor) const { return strides_[factor].back(); }

 private:
  std::vector<std::size_t> sizes_;
  std::vector<std::size_t> digits_;
  std::vector<std::size_t> places_;
  std::vector<std::vector<std::size_t>> strides_;
};

}  // namespace

Elimination::Elimination(const Problem& problem, double price) : done_(problem.variables.size()) {
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& variable = problem.variables[v];
    options_.push_back(variable.cost.size());
    CostFactor factor{.scope = {v}, .cost = variable.cost};
    if (price > 0)
      for (std::size_t i = 0; i < variable.load.size(); ++i)
        factor.cost[i] += price * variable.load[i];
    factors_of_.emplace_back();
    add(std::move(factor));
  }
  for (const Pair& pair : problem.pairs) add({.scope = {pair.a, pair.b}, .cost = pair.cost});
}

void Elimination::add(CostFactor factor) {
  for (const std::size_t variable : factor.scope) factors_of_[variable].push_back(factors_.size());
  factors_.push_back(std::move(factor));
}

std::vector<const CostFactor*> Elimination::factors() const {
  std::vector<const CostFactor*> left;
  for (const CostFactor& factor : factors_)
    if (!factor.scope.empty()) left.push_back(&factor);
  return left;
}

std::vector<std::size_t> Elimination::neighbours_of(std::size_t variable) const {
  std::set<std::size_t> all;
  for (const std::size_t f : factors_of_[variable])
    all.insert(factors_[f].scope.begin(), factors_[f].scope.end());
  all.erase(variable);
  return {all.begin(), all.end()};
}

Elimination::Size Elimination::size_of(std::size_t variable) const {
  Size size{.entries = static_cast<double>(options_[variable])};
  for (const std::size_t other : neighbours_of(variable)) {
    size.entries *= static_cast<double>(options_[other]);
    ++size.neighbours;
  }
  return size;
}

void Elimination::eliminate(std::size_t variable) {
  std::vector<std::size_t> scope = neighbours_of(variable);
  CostFactor made{.scope = scope};
  scope.push_back(variable);  // fastest
  std::vector<CostFactor> own;
  for (const std::size_t f : factors_of_[variable])
    if (!factors_[f].scope.empty()) own.push_back(std::exchange(factors_[f], {}));
  std::vector<const CostFactor*> refer;
  for (const CostFactor& factor : own) refer.push_back(&factor);

  std::size_t entries = 1;
  for (const std::size_t other : made.scope) entries *= options_[other];
  Record record{variable, made.scope, std::vector<std::size_t>(entries)};
  made.cost.resize(entries);
  Odometer odometer(scope, options_, refer);
  for (std::size_t entry = 0; entry < entries; ++entry) {
    double best = kForbidden;
    std::size_t chosen = 0;
    for (std::size_t option = 0; option < options_[variable]; ++option) {
      double cost = 0;
      for (std::size_t f = 0; f < own.size(); ++f)
        cost += own[f].cost[odometer.place(f) + option * odometer.stride_of_last(f)];
      if (cost < best) {
        best = cost;
        chosen = option;
      }
    }
    made.cost[entry] = best;
    record.best[entry] = chosen;
    odometer.next(made.scope.size());
  }
  if (made.scope.empty()) {
    constant_ += made.cost.front();
  } else {
    add(std::move(made));
  }
  records_.push_back(std::move(record));
  done_[variable] = true;
}

bool Elimination::run(std::size_t most) {
  std::vector<double> entries;
  for (std::size_t v = 0; v < done_.size(); ++v) entries.push_back(size_of(v).entries);
  while (true) {
    std::optional<std::size_t> next;
    for (std::size_t v = 0; v < done_.size(); ++v)
      if (!done_[v] && (!next || entries[v] < entries[*next])) next = v;
    if (!next) return true;
    if (entries[*next] > static_cast<double>(most)) return false;
    const std::vector<std::size_t> changed = neighbours_of(*next);
    eliminate(*next);
    for (const std::size_t v : changed) entries[v] = size_of(v).entries;
  }
}

void Elimination::complete(std::vector<std::size_t>& choice) const {
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    std::size_t place = 0;
    for (const std::size_t other : record->scope) place = place * options_[other] + choice[other];
    choice[record->variable] = record->best[place];
  }
}

}  // namespace foreshard::search
