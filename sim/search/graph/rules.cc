// Applies rules of thumb to graphs (rules.h), from rules/ and from the file of `search --rules`. A
// rule whose pattern a graph does not have gives nothing.
#include "sim/search/graph/rules.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "base/text.h"

#include "sim/search/graph/internal/rules.h"

namespace foreshard::search {
namespace {

struct LibraryRule {
  std::string_view name;
  internal::MakeRule* make;
};

constexpr std::array<LibraryRule, 3> kRules{{
    {"data-parallel", internal::data_parallel},
    {"megatron", internal::megatron},
    {"table-rows", internal::table_rows},
}};

bool applies(const Annotation& annotation, const Graph& graph) {
  if (annotation.op.empty())
    return std::ranges::any_of(graph.tensors, [&](const Tensor& tensor) {
      return matches(annotation.tensor, tensor.name);
    });
  return std::ranges::any_of(graph.operators,
                             [&](const Operator& op) { return matches(annotation.op, op.name); });
}

// The names that a user's rule cannot have.
std::vector<std::string> names_taken() {
  std::vector<std::string> names{"operators", "study"};
  for (const LibraryRule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

std::string name_of(const Annotation& annotation) {
  return annotation.op.empty() ? "tensor '" + annotation.tensor + "'"
                               : "operator '" + annotation.op + "'";
}

}  // namespace

const yaml::Table<GraphRule>& yaml_table(const GraphRule*) {
  static const auto table =
      yaml::Table<GraphRule>("rule", "How operators and tensors of some names are split.")
          .required("name", &GraphRule::name, "What the result calls it.", yaml::non_empty())
          .optional("doc", &GraphRule::doc, "What it is for.")
          .required("annotations", &GraphRule::annotations,
                    "As graph.annotations; those that match nothing are left out.",
                    yaml::non_empty());
  return table;
}

const yaml::Table<GraphRules>& yaml_table(const GraphRules*) {
  static const auto table =
      yaml::Table<GraphRules>("rules", "Rules that a search of a graph tries (--rules).")
          .required("rules", &GraphRules::rules, "Each is tried on every mesh.", yaml::non_empty());
  return table;
}

Status faults_in(const std::vector<GraphRule>& users, const Graph& graph,
                 const std::vector<MeshAxis>& mesh, std::int64_t batch,
                 const yaml::Loader& loader) {
  std::vector<std::string> taken = names_taken();
  std::vector<MeshAxis> ones = mesh;  // an axis of one rank divides everything
  for (MeshAxis& axis : ones) axis.size = 1;
  for (std::size_t r = 0; r < users.size(); ++r) {
    const std::string at = fmt::format("rules.{}", r);
    if (std::ranges::find(taken, users[r].name) != taken.end())
      return loader.error_at(at + ".name", fmt::format("there is another rule '{}'", users[r].name),
                             "give it a name beside " + join(taken));
    taken.push_back(users[r].name);
    for (std::size_t a = 0; a < users[r].annotations.size(); ++a) {
      const Annotation& annotation = users[r].annotations[a];
      if (!applies(annotation, graph)) continue;
      Graph copy = graph;
      const auto remarks = annotate(copy, ones, {.annotations = {annotation}, .batch = batch});
      if (!remarks)
        return loader.error_at(fmt::format("{}.annotations.{}", at, a), remarks.error().message);
    }
  }
  return {};
}

std::vector<std::string> unmatched(const std::vector<GraphRule>& users, const Graph& graph) {
  std::vector<std::string> remarks;
  for (const GraphRule& rule : users) {
    std::vector<std::string> names;
    for (const Annotation& annotation : rule.annotations)
      if (!applies(annotation, graph)) names.push_back(name_of(annotation));
    if (names.empty()) continue;
    const bool all = names.size() == rule.annotations.size();
    remarks.push_back(fmt::format("rule '{}': the graph has no {}; {}", rule.name, join(names),
                                  all ? "the rule is not tried" : "the rest of it is tried"));
  }
  return remarks;
}

std::vector<AppliedRule> applied(const std::vector<GraphRule>& users, const Graph& graph,
                                 const std::vector<MeshAxis>& mesh, std::int64_t batch) {
  std::vector<AppliedRule> all;
  for (const LibraryRule& rule : kRules)
    if (auto annotations = rule.make(graph, mesh, batch))
      all.push_back({.name = std::string(rule.name), .annotations = *std::move(annotations)});
  for (const GraphRule& rule : users) {
    AppliedRule one{.name = rule.name, .doc = rule.doc, .annotations = rule.annotations};
    std::erase_if(one.annotations,
                  [&](const Annotation& annotation) { return !applies(annotation, graph); });
    if (!one.annotations.empty()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace foreshard::search
