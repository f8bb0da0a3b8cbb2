#include "base/yaml/internal/node.h"

#include <algorithm>
#include <utility>

namespace foreshard::yaml::internal {

Entry* Node::find(std::string_view key) {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

const Entry* Node::find(std::string_view key) const {
  return const_cast<Node*>(this)->find(key);
}

Node overlay(Node base, Node over) {
  if (base.shape != Node::Shape::kMapping || over.shape != Node::Shape::kMapping) return over;
  base.mark = over.mark;
  for (Entry& entry : over.entries) {
    if (Entry* old = base.find(entry.key)) {
      old->value = overlay(std::move(old->value), std::move(entry.value));
      old->key_mark = entry.key_mark;
    } else {
      base.entries.push_back(std::move(entry));
    }
  }
  return base;
}

Node bare(Node::Shape shape, const Mark& mark) {
  Node node;
  node.shape = shape;
  node.mark = mark;
  return node;
}

Node scalar_node(const Mark& mark, std::string text, bool quoted) {
  Node node = bare(Node::Shape::kScalar, mark);
  node.text = std::move(text);
  node.quoted = quoted;
  return node;
}

}  // namespace foreshard::yaml::internal
