/// \file
/// `Names<E>`: the words of an enum, each with its enumerator and a sentence. An enum that has a
/// `yaml_names` (found by argument-dependent lookup) can be a member in a `Table`.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace foreshard::yaml {

namespace internal {
struct Name {
  std::string text;
  std::int64_t value;
  std::string doc;
};
}  // namespace internal

template <class E>
class Names {
 public:
  struct Entry {
    const char* text;
    E value;
    const char* doc;
  };
  Names(std::initializer_list<Entry> entries) {
    for (const Entry& e : entries)
      entries_.push_back({e.text, static_cast<std::int64_t>(e.value), e.doc});
  }

  /// \pre `value` is in the table.
  std::string_view name_of(E value) const {
    for (const auto& e : entries_)
      if (e.value == static_cast<std::int64_t>(value)) return e.text;
    FORESHARD_CHECK(false && "every enumerator has a name");
    return {};
  }
  std::optional<E> find(std::string_view text) const {
    for (const auto& e : entries_)
      if (e.text == text) return static_cast<E>(e.value);
    return std::nullopt;
  }
  /// The words in the table's order.
  const std::vector<internal::Name>& entries() const { return entries_; }

 private:
  std::vector<internal::Name> entries_;
};

/// The word for `value` in its `yaml_names`.
template <class E>
std::string_view name_of(E value) {
  return yaml_names(static_cast<const E*>(nullptr)).name_of(value);
}

}  // namespace foreshard::yaml
