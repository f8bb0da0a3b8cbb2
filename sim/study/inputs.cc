// Lists the inputs of a study value by value (inputs.h), for `foreshard compare` and the digests of
// a search.
#include "sim/study/inputs.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>

#include "base/check.h"
#include "base/digest/sha256.h"
#include "base/text.h"
#include "base/yaml/describe.h"
#include "base/yaml/leaves.h"

#include "strategies/graph/operators/build.h"

namespace foreshard::study {
namespace {

// Last parts of keys that are for people or hold evidence only.
constexpr std::array<std::string_view, 6> kForPeople{"source",      "evidence", "summary",
                                                     "description", "rows",     "measured_on"};

std::string last_part(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

std::string listed(const std::vector<std::string>& words) {
  return "[" + join(words) + "]";
}

void add_leaves(const std::string& part, const std::string& text,
                std::map<std::string, std::string>& inputs) {
  const auto leaves = yaml::leaves(text, part);
  FORESHARD_CHECK(leaves);  // foreshard itself wrote it
  constexpr std::string_view kValue = ".value";
  for (const yaml::Leaf& leaf : *leaves) {
    std::string key = part + "." + leaf.path;
    if (std::ranges::find(kForPeople, last_part(key)) != kForPeople.end()) continue;
    if (key.ends_with(kValue)) key.resize(key.size() - kValue.size());
    inputs[key] = leaf.list ? listed(leaf.words) : join(leaf.words, " ");
  }
}

std::string shown(Sha256 digest) {
  constexpr std::size_t kShown = 12;
  return "sha256 " + digest.finish().substr(0, kShown);
}

// Digest of the files that the study's own yaml::Loader did not read: a graph's files.
std::string digest_of_graph(const LoadedStudy& study) {
  Sha256 digest;
  for (std::size_t i = study.loader.inputs().size(); i < study.inputs.size(); ++i)
    digest.update(study.inputs[i].bytes);
  return shown(std::move(digest));
}

void add_probabilities(const Graph& graph, std::map<std::string, std::string>& inputs) {
  for (const Operator& op : graph.operators)
    if (op.type == "condition")
      inputs["graph.probabilities." + op.name] = fmt::format("{}", body_weight(op, 0));
  for (const Graph& body : graph.bodies) add_probabilities(body, inputs);
}

std::string digest_of(const MeasuredSteps& steps) {
  Sha256 digest;
  for (const MeasuredStepGroup& group : steps.groups) {
    for (const StepProperty& property : step_properties())
      digest.update(group.kind.*property.value + '\n');
    digest.update(fmt::format("{} {} {} {}\n", group.source, group.steps, group.weight,
                              fmt::join(group.ratios, " ")));
  }
  return shown(std::move(digest));
}

// Adds the graph's keys as the study writes them (GraphSource). `dims` no longer exist once the
// graph is read: they appear in the shapes of its inputs.
void add_graph(const LoadedStudy& study, std::map<std::string, std::string>& inputs) {
  const LoadedGraph& graph = *study.graph;
  inputs["graph"] = study.model.name;
  inputs["graph.file"] = digest_of_graph(study);
  for (const MeshAxis& axis : graph.axes)
    inputs["graph.axes." + axis.name] = std::to_string(axis.size);
  for (std::size_t i = 0; i < graph.annotations.size(); ++i)
    add_leaves("graph.annotations." + std::to_string(i), yaml::echo(graph.annotations[i]), inputs);
  if (!graph.cuts.empty()) inputs["graph.cuts"] = listed(graph.cuts);
  inputs["graph.seed"] = std::to_string(graph.seed);
  if (graph.tokens_per_sample > 0)
    inputs["graph.tokens_per_sample"] = fmt::format("{}", graph.tokens_per_sample);
  for (const TensorId id : graph.graph.inputs) {
    const Tensor& input = graph.graph[id];
    std::vector<std::string> extents;
    for (const std::int64_t extent : input.shape)
      extents.push_back(extents.empty() && extent == graph.batch ? "batch"
                                                                 : std::to_string(extent));
    inputs["graph.inputs." + input.name] = listed(extents);
  }
  add_probabilities(graph.graph, inputs);
}

// "[0, 1, 2]": devices by their numbers in the cluster, in the order of ranks.
std::string devices_of_pool(const Pool& pool) {
  std::vector<std::string> devices;
  for (const std::int32_t device : pool.devices) devices.push_back(std::to_string(device));
  return listed(devices);
}

// Something with a name; the name stands for everything below its key.
struct Named {
  std::string key;
  std::string a;
  std::string b;
};

std::vector<Named> named_parts(const LoadedStudy& a, const LoadedStudy& b) {
  std::vector<Named> parts{
      {"model", a.model.name, b.model.name},
      {"communication", a.communication.name, b.communication.name},
      {"strategy.framework", a.strategy.framework->name, b.strategy.framework->name}};
  if (a.cluster.node && b.cluster.node)
    parts.push_back(
        {"cluster.node.device", (*a.cluster.node)->device->name, (*b.cluster.node)->device->name});
  for (std::size_t i = 0; i < std::min(a.cluster.groups.size(), b.cluster.groups.size()); ++i)
    parts.push_back({"cluster.groups." + std::to_string(i) + ".node.device",
                     a.cluster.groups[i].node->device->name,
                     b.cluster.groups[i].node->device->name});
  return parts;
}

}  // namespace

std::map<std::string, std::string> inputs_of(const LoadedStudy& study) {
  std::map<std::string, std::string> inputs;
  add_leaves("cluster", yaml::echo(study.cluster), inputs);
  if (study.graph)
    add_graph(study, inputs);
  else
    add_leaves("model", yaml::echo(study.model), inputs);
  add_leaves("strategy", yaml::echo(study.strategy), inputs);
  add_leaves("communication", yaml::echo(study.communication), inputs);
  add_leaves("parameter_errors", yaml::echo(study.errors), inputs);
  inputs["measured_steps"] = digest_of(*study.measured_steps);
  if (study.disturbances) add_leaves("disturbances", yaml::echo(*study.disturbances), inputs);
  if (study.pool.named) inputs["use"] = devices_of_pool(study.pool);
  if (study.train) inputs["train"] = *study.train;
  return inputs;
}

std::vector<InputDifference> differences(const LoadedStudy& a, const LoadedStudy& b) {
  std::map<std::string, std::string> of_a = inputs_of(a);
  std::map<std::string, std::string> of_b = inputs_of(b);
  for (const Named& part : named_parts(a, b)) {
    if (part.a == part.b) continue;
    const auto below = [&](const auto& entry) { return entry.first.starts_with(part.key + "."); };
    std::erase_if(of_a, below);
    std::erase_if(of_b, below);
    of_a[part.key] = part.a;
    of_b[part.key] = part.b;
  }
  std::map<std::string, InputDifference> found;
  for (const auto& [key, value] : of_a) found[key] = {key, value, ""};
  for (const auto& [key, value] : of_b) {
    InputDifference& difference = found[key];
    difference.key = key;
    difference.b = value;
  }
  std::vector<InputDifference> list;
  for (auto& [key, difference] : found)
    if (difference.a != difference.b && key != "cluster.name")
      list.push_back(std::move(difference));
  return list;
}

}  // namespace foreshard::study
