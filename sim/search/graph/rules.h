/// \file
/// Rules of thumb for graphs (R3.6, strategy C): a pattern of a graph, and how its tensors and
/// operators are then split. A new rule needs a file in rules/, a declaration in internal/rules.h,
/// and a line in rules.cc. Users write rules in YAML:
///
///     rules:
///       - name: columns-then-rows
///         doc: The first product of a block by columns, the second by rows.
///         annotations:
///           - {operator: "*.up", splits: {z: tensor}}
///           - {operator: "*.down", splits: {y: tensor}}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "base/yaml/table.h"

#include "strategies/graph/annotate.h"
#include "strategies/graph/graph.h"

namespace foreshard::search {

struct GraphRule {
  std::string name{};
  std::string doc{};
  /// Annotations that match nothing in a graph are left out; where none matches, the rule does not
  /// apply.
  std::vector<Annotation> annotations{};
};
struct GraphRules {
  std::vector<GraphRule> rules{};
};
const yaml::Table<GraphRule>& yaml_table(const GraphRule*);
const yaml::Table<GraphRules>& yaml_table(const GraphRules*);

/// Checks users' rules before anything is tried: for names that the library, another rule or a plan
/// by operators has already, and for factors and mesh axes that do not exist, whatever sizes the
/// axes get.
/// \param loader  the loader that read the rules.
/// \return kInvalidInput, with the place of the first fault and what is legal.
Status faults_in(const std::vector<GraphRule>& users, const Graph& graph,
                 const std::vector<MeshAxis>& mesh, std::int64_t batch, const yaml::Loader& loader);

/// Remarks for people on the users' rules and annotations that match nothing in the graph.
std::vector<std::string> unmatched(const std::vector<GraphRule>& users, const Graph& graph);

/// A rule with its annotations for a graph.
struct AppliedRule {
  std::string name{};
  std::string doc{};  ///< Description of a user's rule.
  std::vector<Annotation> annotations{};
};

/// The library's rules that apply to the graph on that mesh, then the rules of `users` that apply.
/// \param batch  same as AnnotateOptions::batch.
std::vector<AppliedRule> applied(const std::vector<GraphRule>& users, const Graph& graph,
                                 const std::vector<MeshAxis>& mesh, std::int64_t batch);

}  // namespace foreshard::search
