// Flattens a parsed document to its values. Callers are the import and export of launch files
// (strategies/launch/) and the inputs of a study (sim/study/inputs.cc).
#include "base/yaml/leaves.h"

#include <algorithm>

#include "base/limits.h"
#include "base/yaml/internal/parse.h"
#include "base/yaml/loader.h"

namespace foreshard::yaml {
namespace {

using internal::Node;

bool is_scalar(const Node& node) {
  return node.shape == Node::Shape::kScalar || node.shape == Node::Shape::kNull;
}

void collect(const Node& node, const std::string& path, const internal::Sources& sources,
             std::vector<Leaf>& found) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (node.shape == Node::Shape::kMapping) {
    for (const auto& entry : node.entries) collect(entry.value, below(entry.key), sources, found);
    return;
  }
  Leaf leaf{.path = path, .place = sources.place(node.mark)};
  if (node.shape == Node::Shape::kScalar) leaf.words.push_back(node.text);
  if (node.shape == Node::Shape::kList) {
    if (!std::ranges::all_of(node.items, is_scalar)) {
      for (std::size_t i = 0; i < node.items.size(); ++i)
        collect(node.items[i], below(std::to_string(i)), sources, found);
      return;
    }
    leaf.list = true;
    for (const Node& item : node.items) leaf.words.push_back(item.text);
  }
  found.push_back(std::move(leaf));
}

}  // namespace

// `root` is there unless there is a fault; an empty text is a fault.
Result<std::vector<Leaf>> leaves(std::string_view text, std::string_view name) {
  internal::Sources sources;
  internal::Diagnostics faults;
  const int source =
      sources.add({.name = std::string(name), .file = {}, .text = std::string(text)});
  const auto root = internal::parse(sources, source, limits::raised(limits::kYamlValues), faults);
  if (const Options options; !faults.empty())
    return faults.error(sources, options.most_errors, options.width);
  std::vector<Leaf> found;
  if (root) collect(*root, "", sources, found);
  return found;
}

}  // namespace foreshard::yaml
