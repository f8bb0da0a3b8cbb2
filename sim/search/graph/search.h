/// \file
/// Search for the best way to split a general graph, operator by operator (requirements in
/// README.md: R3.1, groupings; R3.5 and R3.6, attributes per operator and rules of thumb): on every
/// grouping of the devices, the problem of choices of tables.h is solved and the rules of rules.h
/// are tried. The best few of all plans by estimate are simulated like any strategy, and ranked by
/// their simulated times.
///
/// Where the plan of least estimate needs more memory than there is, the limit enters the problem.
/// Where a simulation needs more memory than its estimate, the problem is solved again with a limit
/// that is lower in that ratio.
///
/// Groupings cover all working devices, and the parts of them that device_subsets_of()
/// (device_subset.h) names: nodes of one kind, nodes without faults. The result shows devices that
/// a plan leaves idle. Where pipeline stages are on devices of several kinds, each takes as many
/// micro-batches at a time as suits its kind (granularity.h).
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
  std::vector<GraphRule> rules{};  ///< The user's rules; faults_in() must find nothing.
  /// 0, 1: rules alone. 2: also plans by operators, solved by dynamic programming. 3: also integer
  /// programming where a gap remains, and groupings with two levels of tensor ranks.
  std::int64_t level = 3;
  std::int64_t simulate = 20;  ///< Candidates that are simulated, the best estimates first.
  std::int64_t threads = 2;
  SolveOptions solve{};
  std::function<void(std::int64_t done, std::int64_t all)> progress{};  ///< Called from any thread.
};

/// One way to run the graph.
struct GraphCandidate {
  Grouping grouping{};
  std::string by{};                       ///< "operators", or the name of a rule.
  std::string doc{};                      ///< Description of a user's rule.
  std::vector<Annotation> annotations{};  ///< Annotations for the study's graph.
  std::optional<Seconds> estimate{};  ///< Nothing for a rule whose choice the tables do not have.
  double gap = 0;          ///< How much less the least possible estimate may be, as a part of it.
  std::string solver{};    ///< Same as Answer::by.
  bool timed_out = false;  ///< The time limit of the integer program was reached.
  /// Operators that are split over axes other than data; 0 for rules.
  std::int64_t operators_split = 0;

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
  std::int64_t groupings = 0;                     ///< Groupings that were tried.
  std::map<std::string, std::int64_t> refused{};  ///< Same as Groupings::refused.
  std::int64_t without_answer = 0;  ///< Groupings on which no choice of operators fits.
  std::int64_t plans = 0;           ///< Plans that were ranked.
  std::map<std::string, std::int64_t> failed{};  ///< Plans that cannot run, by error.
  std::vector<std::string> remarks{};            ///< Remarks on users' rules, for people.
  std::vector<GraphCandidate> simulated{};       ///< Plans that fit, by time, then the others.
};

/// Searches for the best plans of the study's graph. Estimates multiply loops by their iterations,
/// and weight branches of conditions by their probabilities (flat.h). Simulations run every
/// iteration, and draw the branches.
/// \pre the study has a graph.
/// \return kInvalidInput, with its place in the study, where bodies of the graph share names, and
///     where no grouping suits.
Result<GraphSearchResult> search_graph(const study::LoadedStudy& study,
                                       const GraphSearchOptions& options);

}  // namespace foreshard::search
