#include "sim/search/graph/rules.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

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

std::vector<AppliedRule> applied(const std::vector<GraphRule>& users, const Graph& graph,
                                 const std::vector<MeshAxis>& mesh, std::int64_t batch) {
  std::vector<AppliedRule> all;
  for (const LibraryRule& rule : kRules)
    if (auto annotations = rule.make(graph, mesh, batch))
      all.push_back({std::string(rule.name), *std::move(annotations)});
  for (const GraphRule& rule : users) {
    AppliedRule one{.name = rule.name, .annotations = rule.annotations};
    std::erase_if(one.annotations,
                  [&](const Annotation& annotation) { return !applies(annotation, graph); });
    if (!one.annotations.empty()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace foreshard::search
