/// \file
/// Search for how to split a general graph, operator by operator (R3.1, R3.5, R3.6): on every
/// grouping of the devices the problem of choices of tables.h is solved, and the rules of rules.h
/// are tried; the best few of all by estimate are simulated as any strategy is, and ranked by that.
///
/// Where the least estimate needs more memory than there is, the limit enters the problem; where
/// the simulation needs more than the estimate, the problem is solved anew with a limit that is
/// lower in that ratio.
///
/// Groupings are of all devices that work, and of the parts of them that places_of() (place.h)
/// names: nodes of one kind, nodes that have lost nothing. What a plan leaves idle is shown. The
/// stages of a pipeline on devices of several kinds take as many micro-batches at a time as suits
/// their kind (granularity.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/search/graph/meshes.h"
#include "sim/search/graph/problem.h"
#include "sim/search/graph/rules.h"
#include "sim/simulate/prediction.h"
#include "sim/study/evidence.h"
#include "sim/study/study.h"

namespace foreshard::search {

struct GraphSearchOptions {
  std::vector<GraphRule> rules{};  ///< The user's; faults_in() finds nothing.
  /// 0, 1: rules alone. 2: operators too, solved by dynamic programming. 3: and by integer
  /// programming, where that leaves a gap.
  std::int64_t level = 3;
  std::int64_t simulate = 20;  ///< Candidates that are simulated, the best estimates first.
  std::int64_t threads = 2;
  SolveOptions solve{};
  std::function<void(std::int64_t done, std::int64_t all)> progress{};  ///< From any thread.
};

/// One way to run the graph.
struct GraphCandidate {
  Grouping grouping{};
  std::string by{};                       ///< "operators", or the name of a rule.
  std::string doc{};                      ///< Of a user's rule.
  std::vector<Annotation> annotations{};  ///< For the study.
  std::optional<Seconds> estimate{};      ///< Of a rule, where tables have what it chose.
  double gap = 0;                         ///< How much less the least estimate may be, as a part.
  std::string solver{};                   ///< As in Answer::by.
  bool timed_out = false;                 ///< The seconds of the integer program decided.
  std::int64_t operators_split = 0;       ///< By axes beside data; of rules 0.

  // Simulated:
  Seconds step{};
  Seconds low{};
  Seconds high{};
  study::Unmeasured unmeasured{};
  Bytes peak{};
  Bytes capacity{};
  bool fits = true;
  double tflops_per_device = 0;
  sim::Breakdown breakdown{};
  sim::Expense expense{};
  std::int64_t idle = 0;

  Bytes headroom() const { return capacity - peak; }
};

struct GraphSearchResult {
  std::int64_t groupings = 0;                     ///< That were tried.
  std::map<std::string, std::int64_t> refused{};  ///< As in Groupings.
  std::int64_t without_answer = 0;  ///< Groupings on which no choice of operators fits.
  std::int64_t plans = 0;           ///< That could be ranked.
  std::map<std::string, std::int64_t> failed{};  ///< Plans that cannot run, by why.
  std::vector<std::string> remarks{};            ///< On users' rules, for people.
  std::vector<GraphCandidate> simulated{};       ///< Those that fit, by time, then the others.
};

/// \pre the study has a graph.
/// Loops are priced by their iterations, conditions by the expectation of their branches (flat.h);
/// simulations run the ones and draw the others.
/// \return kInvalidInput, with a place, where bodies of the graph share names, and where no grouping
///     suits.
Result<GraphSearchResult> search_graph(const study::LoadedStudy& study,
                                       const GraphSearchOptions& options);

}  // namespace foreshard::search
