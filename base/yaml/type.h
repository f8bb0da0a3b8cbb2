/// \file
/// `Type`: a C++ type as the reader sees it, without templates. `type_of<T>()` builds it once; all
/// reading, checking, echoing and documenting works on `Type` and `void*`, so that a header with a
/// `Table` costs little to compile.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "base/yaml/constraint.h"
#include "base/yaml/names.h"
#include "base/yaml/ref.h"
#include "base/yaml/sourced.h"
#include "base/yaml/words.h"
#include "base/yaml/written.h"

namespace foreshard::yaml {

template <class T>
class Table;

namespace internal {

struct Type;

struct Field {
  std::string key;
  std::string doc;
  bool required;
  std::size_t offset;     ///< Offset of the member in its object, in bytes.
  const Type& (*type)();  ///< A function, so that a type may contain itself.
  std::vector<Constraint> constraints;
};

/// A condition between members; the message is empty if it holds.
struct Check {
  std::string key;  ///< The field to point at.
  std::function<std::string(const void*)> fault;
};

struct Fields {
  std::string name;
  std::string doc;
  std::string folder;  ///< Catalogue folder; empty: not a catalogue type.
  std::vector<Field> fields;
  std::vector<Check> checks;
  const void* defaults;  ///< An object as its constructor leaves it.
};

enum class Kind : std::uint8_t {
  kBool,
  kInteger,
  kReal,
  kText,
  kQuantity,
  kEnum,
  kOptional,
  kList,
  kMap,
  kStruct,
  kSourced,
  kRef,
  kWords,
  kWritten,
};

/// The members that a kind does not use are null.
struct Type {
  Kind kind;
  Dimension dimension{};                          ///< kQuantity
  const std::vector<Name>* (*names)() = nullptr;  ///< kEnum
  const Fields& (*fields)() = nullptr;            ///< kStruct
  std::shared_ptr<void> (*fresh)() = nullptr;  ///< kStruct: an object as its constructor leaves it
  const Type& (*element)() = nullptr;          ///< kOptional, kList, kMap, kSourced, kRef
  std::int64_t lowest = 0;                     ///< kInteger
  std::int64_t highest = 0;                    ///< kInteger
  void (*set_integer)(void*, std::int64_t) = {};  ///< kInteger, kEnum
  std::int64_t (*integer)(const void*) = {};      ///< kInteger, kEnum
  void (*set_real)(void*, double) = {};           ///< kReal, kQuantity
  double (*real)(const void*) = {};               ///< kReal, kQuantity
  void (*clear)(void*) = {};                      ///< kOptional, kList, kMap
  void* (*add)(void*, const std::string&) = {};   ///< a new element: kOptional, kList, kMap (key)
  std::size_t (*size)(const void*) = {};          ///< kOptional, kList, kMap
  /// Visits the elements in order, with their keys in a map: kOptional, kList, kMap.
  void (*each)(const void*, const std::function<void(const std::string&, const void*)>&) = {};
  void* (*value)(void*) = {};         ///< kSourced, kRef
  std::string* (*text)(void*) = {};   ///< the source of kSourced, the name of kRef
  Evidence* (*evidence)(void*) = {};  ///< kSourced
};

template <class T>
struct TypeOf;

}  // namespace internal

template <class T>
const internal::Type& type_of() {
  static const internal::Type type = internal::TypeOf<T>::make();
  return type;
}

namespace internal {

template <class T>
concept HasTable = requires {
  yaml_table(static_cast<const T*>(nullptr));
};

template <class T>
struct TypeOf {
  static Type make() {
    static_assert(HasTable<T>, "the type needs a yaml_table in its namespace");
    return {.kind = Kind::kStruct,
            .fields = []() -> const Fields& {
              return yaml_table(static_cast<const T*>(nullptr)).fields();
            },
            .fresh = []() -> std::shared_ptr<void> { return std::make_shared<T>(); }};
  }
};

template <>
struct TypeOf<bool> {
  static Type make() { return {.kind = Kind::kBool}; }
};
template <>
struct TypeOf<std::string> {
  static Type make() { return {.kind = Kind::kText}; }
};

template <>
struct TypeOf<Words> {
  static Type make() { return {.kind = Kind::kWords}; }
};

template <>
struct TypeOf<Written> {
  static Type make() { return {.kind = Kind::kWritten}; }
};

template <std::integral T>
struct TypeOf<T> {
  static Type make() {
    using Range = std::numeric_limits<T>;
    constexpr auto kHighest = std::numeric_limits<std::int64_t>::max();
    return {.kind = Kind::kInteger,
            .lowest = static_cast<std::int64_t>(Range::min()),
            .highest = std::cmp_less(kHighest, Range::max())
                           ? kHighest
                           : static_cast<std::int64_t>(Range::max()),
            .set_integer = [](void* p, std::int64_t v) { *static_cast<T*>(p) = static_cast<T>(v); },
            .integer =
                [](const void* p) { return static_cast<std::int64_t>(*static_cast<const T*>(p)); }};
  }
};

template <>
struct TypeOf<double> {
  static Type make() {
    return {.kind = Kind::kReal,
            .set_real = [](void* p, double v) { *static_cast<double*>(p) = v; },
            .real = [](const void* p) { return *static_cast<const double*>(p); }};
  }
};

template <int B, int S, int F, int J, int D, int K>
struct TypeOf<Quantity<B, S, F, J, D, K>> {
  using Q = Quantity<B, S, F, J, D, K>;
  static Type make() {
    return {.kind = Kind::kQuantity,
            .dimension = kDimensionOf<Q>,
            .set_real = [](void* p, double v) { *static_cast<Q*>(p) = Q::from_base(v); },
            .real = [](const void* p) { return static_cast<const Q*>(p)->in_base(); }};
  }
};

template <class E>
requires std::is_enum_v<E>
struct TypeOf<E> {
  static Type make() {
    return {.kind = Kind::kEnum,
            .names = [] { return &yaml_names(static_cast<const E*>(nullptr)).entries(); },
            .set_integer = [](void* p, std::int64_t v) { *static_cast<E*>(p) = static_cast<E>(v); },
            .integer =
                [](const void* p) { return static_cast<std::int64_t>(*static_cast<const E*>(p)); }};
  }
};

template <class T>
struct TypeOf<std::optional<T>> {
  using O = std::optional<T>;
  static Type make() {
    return {
        .kind = Kind::kOptional,
        .element = &type_of<T>,
        .clear = [](void* p) { static_cast<O*>(p)->reset(); },
        .add = [](void* p, const std::string&) -> void* { return &static_cast<O*>(p)->emplace(); },
        .size =
            [](const void* p) {
              return static_cast<const O*>(p)->has_value() ? std::size_t{1} : std::size_t{0};
            },
        .each =
            [](const void* p, const std::function<void(const std::string&, const void*)>& visit) {
              if (const O& o = *static_cast<const O*>(p)) visit({}, &*o);
            }};
  }
};

template <class T>
struct TypeOf<std::vector<T>> {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to point at");
  using V = std::vector<T>;
  static Type make() {
    return {
        .kind = Kind::kList,
        .element = &type_of<T>,
        .clear = [](void* p) { static_cast<V*>(p)->clear(); },
        .add = [](void* p, const std::string&) -> void* {
          return &static_cast<V*>(p)->emplace_back();
        },
        .size = [](const void* p) { return static_cast<const V*>(p)->size(); },
        .each =
            [](const void* p, const std::function<void(const std::string&, const void*)>& visit) {
              for (const T& element : *static_cast<const V*>(p)) visit({}, &element);
            }};
  }
};

template <class T>
struct TypeOf<std::map<std::string, T>> {
  using M = std::map<std::string, T>;
  static Type make() {
    return {
        .kind = Kind::kMap,
        .element = &type_of<T>,
        .clear = [](void* p) { static_cast<M*>(p)->clear(); },
        .add = [](void* p, const std::string& key) -> void* { return &(*static_cast<M*>(p))[key]; },
        .size = [](const void* p) { return static_cast<const M*>(p)->size(); },
        .each =
            [](const void* p, const std::function<void(const std::string&, const void*)>& visit) {
              for (const auto& [key, element] : *static_cast<const M*>(p)) visit(key, &element);
            }};
  }
};

template <class T>
struct TypeOf<Sourced<T>> {
  static Type make() {
    return {.kind = Kind::kSourced,
            .element = &type_of<T>,
            .value = [](void* p) -> void* { return &static_cast<Sourced<T>*>(p)->value; },
            .text = [](void* p) { return &static_cast<Sourced<T>*>(p)->source; },
            .evidence = [](void* p) { return &static_cast<Sourced<T>*>(p)->evidence; }};
  }
};

template <class T>
struct TypeOf<Ref<T>> {
  static Type make() {
    return {.kind = Kind::kRef,
            .element = &type_of<T>,
            .value = [](void* p) -> void* { return &static_cast<Ref<T>*>(p)->value; },
            .text = [](void* p) { return &static_cast<Ref<T>*>(p)->name; }};
  }
};

}  // namespace internal
}  // namespace foreshard::yaml
