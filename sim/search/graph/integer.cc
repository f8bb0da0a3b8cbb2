// Solves a problem of the search over a graph's annotations (problem.h) as an integer program, by
// CBC. A column is an option of a variable or a pair of options.
#include <algorithm>
#include <cmath>
#include <coin/Cbc_C_Interface.h>
#include <fmt/format.h>
#include <memory>
#include <utility>

#include "sim/search/graph/eliminate.h"
#include "sim/search/graph/problem.h"

namespace foreshard::search {
namespace {

constexpr std::size_t kMostColumns = 1'000'000;

struct Deleter {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};
using Model = std::unique_ptr<Cbc_Model, Deleter>;

// The matrix of the program, its bounds and costs; stored by column, as CBC expects it.
struct Columns {
  std::vector<CoinBigIndex> begins{0};
  std::vector<int> rows{};
  std::vector<double> values{};
  std::vector<double> upper{};
  std::vector<double> cost{};
  std::vector<double> row_lower{};
  std::vector<double> row_upper{};

  int row(double lower, double upper_bound) {
    row_lower.push_back(lower);
    row_upper.push_back(upper_bound);
    return static_cast<int>(row_lower.size()) - 1;
  }
  void entry(int at, double value) {
    rows.push_back(at);
    values.push_back(value);
  }
  // Ends a column, whose entries have been added. An infinite price forbids it.
  void end(double price) {
    const bool allowed = std::isfinite(price);
    cost.push_back(allowed ? price : 0);
    upper.push_back(allowed ? 1 : 0);
    begins.push_back(static_cast<CoinBigIndex>(rows.size()));
  }
};

// The integer program of what is left of a problem after elimination.
class Program {
 public:
  Program(const Problem& problem, const Elimination& reduced, double unit)
      : problem_(problem), unit_(unit), first_(problem.variables.size(), -1) {
    single_.resize(problem.variables.size());
    for (const CostFactor* factor : reduced.factors()) {
      if (factor->scope.size() == 1) {
        add_single(*factor);
      } else {
        pairs_.push_back(factor);
      }
    }
    for (std::size_t v = 0; v < problem.variables.size(); ++v)
      if (reduced.is_left(v)) left_.push_back(v);
  }

  std::size_t size() const {
    std::size_t count = 0;
    for (const std::size_t v : left_) count += options(v);
    for (const CostFactor* pair : pairs_) count += pair->cost.size();
    return count;
  }

  Columns columns() {
    Columns made;
    const int limit = made.row(-kForbidden, std::isfinite(problem_.limit) ? 1 : kForbidden);
    std::vector<int> choose(problem_.variables.size());
    for (const std::size_t v : left_) choose[v] = made.row(1, 1);
    // Each pair has a row for every option of its first variable, then for every option of its
    // second.
    std::vector<int> ties;
    std::vector<std::vector<std::pair<int, std::size_t>>> tied(problem_.variables.size());
    for (const CostFactor* pair : pairs_) {
      ties.push_back(static_cast<int>(made.row_lower.size()));
      for (const std::size_t v : pair->scope) {
        tied[v].emplace_back(static_cast<int>(made.row_lower.size()), v);
        for (std::size_t i = 0; i < options(v); ++i) made.row(0, 0);
      }
    }
    for (const std::size_t v : left_) {
      first_[v] = static_cast<int>(made.cost.size());
      const auto& load = problem_.variables[v].load;
      for (std::size_t i = 0; i < options(v); ++i) {
        if (std::isfinite(problem_.limit) && !load.empty() && load[i] > 0)
          made.entry(limit, load[i] / problem_.limit);
        made.entry(choose[v], 1);
        for (const auto& [row, variable] : tied[v]) made.entry(row + static_cast<int>(i), -1);
        made.end(single_[v].empty() ? 0 : single_[v][i] / unit_);
      }
    }
    integers_ = static_cast<int>(made.cost.size());
    for (std::size_t p = 0; p < pairs_.size(); ++p) {
      const std::size_t rows = options(pairs_[p]->scope[0]);
      const std::size_t columns = options(pairs_[p]->scope[1]);
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
          made.entry(ties[p] + static_cast<int>(i), 1);
          made.entry(ties[p] + static_cast<int>(rows + j), 1);
          made.end(pairs_[p]->cost[i * columns + j] / unit_);
        }
      }
    }
    return made;
  }

  int integers() const { return integers_; }

  std::vector<std::size_t> read(const double* solution) const {
    std::vector<std::size_t> choice(problem_.variables.size());
    for (const std::size_t v : left_) {
      const double* begin = solution + first_[v];
      const auto best = std::max_element(begin, begin + options(v));
      choice[v] = static_cast<std::size_t>(best - begin);
    }
    return choice;
  }

 private:
  std::size_t options(std::size_t v) const { return problem_.variables[v].cost.size(); }

  void add_single(const CostFactor& factor) {
    auto& sum = single_[factor.scope.front()];
    sum.resize(factor.cost.size());
    for (std::size_t i = 0; i < factor.cost.size(); ++i) sum[i] += factor.cost[i];
  }

  const Problem& problem_;
  double unit_;
  std::vector<std::vector<double>> single_;
  std::vector<const CostFactor*> pairs_;
  std::vector<std::size_t> left_;
  std::vector<int> first_;  // column of each variable's first option
  int integers_ = 0;
};

bool has_load(const Variable& variable) {
  return std::ranges::any_of(variable.load, [](double load) { return load > 0; });
}

// Eliminates variables without load that have at most two neighbours, so that every factor remains
// one of at most two variables.
void reduce(const Problem& problem, Elimination& elimination) {
  for (bool changes = true; changes;) {
    changes = false;
    for (std::size_t v = 0; v < problem.variables.size(); ++v) {
      if (!elimination.is_left(v) || has_load(problem.variables[v])) continue;
      if (elimination.size_of(v).neighbours > 2) continue;
      elimination.eliminate(v);
      changes = true;
    }
  }
}

}  // namespace

std::optional<Answer> solve_by_cbc(const Problem& problem, const SolveOptions& options,
                                   const std::vector<std::size_t>& known) {
  const double known_cost = known.empty() ? kForbidden : problem.cost_of(known);
  double unit = known_cost;
  if (!std::isfinite(unit) || unit <= 0) {
    unit = 0;
    for (const Variable& variable : problem.variables)
      unit += *std::ranges::min_element(variable.cost);
    if (!std::isfinite(unit) || unit <= 0) unit = 1;
  }
  Elimination reduced(problem);
  reduce(problem, reduced);
  Program program(problem, reduced, unit);
  if (program.size() > kMostColumns) return std::nullopt;
  if (program.size() == 0) {
    std::vector<std::size_t> choice(problem.variables.size());
    reduced.complete(choice);
    const double cost = problem.cost_of(choice);
    if (!std::isfinite(cost)) return std::nullopt;
    return Answer{
        .choice = std::move(choice), .cost = cost, .bound = cost, .by = "dynamic programming"};
  }
  const Columns columns = program.columns();
  const Model model(Cbc_newModel());
  Cbc_setParameter(model.get(), "log", "0");   // the log of CBC
  Cbc_setParameter(model.get(), "slog", "0");  // and of its linear programs
  Cbc_loadProblem(model.get(), static_cast<int>(columns.cost.size()),
                  static_cast<int>(columns.row_lower.size()), columns.begins.data(),
                  columns.rows.data(), columns.values.data(), nullptr, columns.upper.data(),
                  columns.cost.data(), columns.row_lower.data(), columns.row_upper.data());
  for (int i = 0; i < program.integers(); ++i) Cbc_setInteger(model.get(), i);
  Cbc_setParameter(model.get(), "maxNodes", fmt::format("{}", options.nodes).c_str());
  Cbc_setParameter(model.get(), "seconds", fmt::format("{}", options.seconds).c_str());
  Cbc_setParameter(model.get(), "ratioGap", "0");
  Cbc_setParameter(model.get(), "threads", "0");
  Cbc_solve(model.get());

  const bool optimal = Cbc_isProvenOptimal(model.get()) != 0;
  Answer answer{.choice = known,
                .cost = known_cost,
                .timed_out = Cbc_isSecondsLimitReached(model.get()) != 0,
                .by = "integer programming"};
  if (Cbc_numberSavedSolutions(model.get()) > 0 || optimal) {
    std::vector<std::size_t> found = program.read(Cbc_getColSolution(model.get()));
    reduced.complete(found);
    const double cost = problem.cost_of(found);
    if (cost < answer.cost && problem.load_of(found) <= problem.limit) {
      answer.choice = std::move(found);
      answer.cost = cost;
    }
  }
  if (answer.choice.empty() || !std::isfinite(answer.cost)) return std::nullopt;
  const double possible = reduced.constant() + unit * Cbc_getBestPossibleObjValue(model.get());
  answer.bound = optimal ? answer.cost : std::min(answer.cost, possible);
  return answer;
}

}  // namespace foreshard::search
