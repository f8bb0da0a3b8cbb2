/// \file
/// Rules of thumb for graphs (R3.6, strategy C): a pattern that a graph has, and how its tensors
/// and operators are then split. To add one: its file in rules/, a declaration in internal/rules.h,
/// a line in rules.cc. Users write theirs in YAML:
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
  /// Those that match nothing in a graph are left out; where none matches, the rule does not apply.
  std::vector<Annotation> annotations{};
};
struct GraphRules {
  std::vector<GraphRule> rules{};
};
const yaml::Table<GraphRule>& yaml_table(const GraphRule*);
const yaml::Table<GraphRules>& yaml_table(const GraphRules*);

/// What users' rules have that the graph has not, before anything is tried: names that the library,
/// another rule or a plan by operators has; factors and mesh axes that there are not, whatever size
/// the axes get.
/// \param loader  read the rules.
/// \return kInvalidInput, with the first one's place, and what is legal.
Status faults_in(const std::vector<GraphRule>& users, const Graph& graph,
                 const std::vector<MeshAxis>& mesh, std::int64_t batch, const yaml::Loader& loader);

/// For people: the users' rules, and their annotations, that match nothing in the graph.
std::vector<std::string> unmatched(const std::vector<GraphRule>& users, const Graph& graph);

/// What a rule makes of a graph.
struct AppliedRule {
  std::string name{};
  std::string doc{};  ///< Of a user's rule.
  std::vector<Annotation> annotations{};
};

/// The rules of the library that apply to the graph on that mesh, then those of `users`.
/// \param batch  as in AnnotateOptions.
std::vector<AppliedRule> applied(const std::vector<GraphRule>& users, const Graph& graph,
                                 const std::vector<MeshAxis>& mesh, std::int64_t batch);

}  // namespace foreshard::search
