/// \file
/// `Node`: a YAML document as a plain value, aliases expanded, every part with its place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml/internal/sources.h"

namespace foreshard::yaml::internal {

struct Entry;

struct Node {
  enum class Shape : std::uint8_t { kNull, kScalar, kList, kMapping };
  Shape shape = Shape::kNull;
  Mark mark;
  std::string text;            ///< kScalar
  bool quoted = false;         ///< kScalar: in quotes or as a block.
  std::vector<Node> items;     ///< kList
  std::vector<Entry> entries;  ///< kMapping: in the file's order, keys unique.

  Entry* find(std::string_view key);
  const Entry* find(std::string_view key) const;
};

struct Entry {
  std::string key;
  Mark key_mark;
  Node value;
};

/// A node without content.
Node bare(Node::Shape shape, const Mark& mark);
/// A scalar.
Node scalar_node(const Mark& mark, std::string text, bool quoted);

/// `over` on top of `base`: mappings key by key, everything else replaced.
Node overlay(Node base, Node over);

}  // namespace foreshard::yaml::internal
