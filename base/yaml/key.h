/// \file
/// `Key<T>`: an object as a sequence of numbers, for caches. Every field of T's `Table` is in it
/// but for those that are left out by name, so that a new field makes a cache miss where it need
/// not, and never a stale hit.
///
///     constexpr std::string_view kWithout[] = {"global_batch", "schedule"};
///     const yaml::Key<Strategy> key(kWithout);
///     std::vector<std::int64_t> numbers;
///     key.append(strategy, numbers);
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/yaml/table.h"

namespace foreshard::yaml {

namespace internal {
/// The fields that a key is of.
std::vector<const Field*> fields_without(const Fields& fields,
                                         std::span<const std::string_view> without);
void append_key(const Type& type, const void* object, std::vector<std::int64_t>& numbers);
}  // namespace internal

template <class T>
class Key {
 public:
  /// \pre `without` are keys of T's table.
  explicit Key(std::span<const std::string_view> without)
      : fields_(internal::fields_without(yaml_table(static_cast<const T*>(nullptr)).fields(),
                                         without)) {}

  /// Appends the numbers of `object`. Two objects give the same numbers if and only if all fields
  /// of the key are equal. Cost: O(size of the fields).
  void append(const T& object, std::vector<std::int64_t>& numbers) const {
    for (const internal::Field* field : fields_)
      internal::append_key(field->type(), reinterpret_cast<const char*>(&object) + field->offset,
                           numbers);
  }

 private:
  std::vector<const internal::Field*> fields_;
};

}  // namespace foreshard::yaml
