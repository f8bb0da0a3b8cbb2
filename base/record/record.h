/// \file
/// `Record<T>`: the keys of a result, written down once. The same record writes the JSON, generates
/// its JSON Schema (`foreshard schema RESULT`), and reads back what is stored.
///
///     const Record<Worth>& record_of(const Worth*) {
///       static const auto record = Record<Worth>("sensitivity", "Effect of a faster part.")
///           .field("speed", &Worth::speed, "What gets 10 % more, alone.")
///           .field("kwh", [](const Worth& w) { return w.energy / 1_kWh; }, "Of a step.");
///       return record;
///     }
///
/// A field's value is a data member, or what a function of the object returns: bool, integers,
/// double, text, quantities (in their base unit; Bytes as whole numbers), enums with `yaml_names`,
/// std::optional (null if empty), std::vector, std::array, maps from text, types with a `record_of`
/// (found by argument-dependent lookup), and Json. Data members can be read back; a record is
/// readable if all its fields are, but for computed ones, which are skipped.
///
/// Only the source that defines a record includes this header; others declare
/// `const record::Record<T>& record_of(const T*);` with base/record/forward.h.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/quantity.h"
#include "base/record/forward.h"
#include "base/result.h"
#include "base/yaml/names.h"

namespace foreshard::record {

namespace internal {

struct Field {
  std::string key;
  std::string doc;
  bool is_always_there;  ///< Otherwise the key is absent where there is no value.
  Json schema_of_value;  ///< Given by the record's author; null: the schema of the value's type.
  /// nullopt: there is no value, and the key is left out.
  std::function<std::optional<Json>(const void* object)> write;
  /// Empty for computed fields. \return what is wrong, after the place: "/low: no number"; or "".
  std::function<std::string(const Json& value, void* object)> read;
  std::function<Json(Json& definitions)> schema;
};

struct Fields {
  std::string name;
  std::string doc;
  std::string id;  ///< "foreshard.prediction/1" for a result of its own; empty for a part of one.
  std::vector<Field> fields;
};

Json write(const Fields& fields, const void* object);
Json object_schema(const Fields& fields, Json& definitions);
std::string read(const Fields& fields, const Json& json, void* object);
/// A reference to the schema of these fields, which is added to `definitions` if it is not there.
Json refer(const Fields& fields, Json& definitions);
Json schema(const Fields& fields);
Json or_null(Json schema);
/// "'a', 'b' or 'c'", of the words of an enum.
std::string words_of(const std::vector<yaml::internal::Name>& names);

/// How values of type V are written and read, and the schema of what is written.
template <class V>
struct Form;

template <class V>
concept HasRecord = requires {
  record_of(static_cast<const V*>(nullptr));
};

template <HasRecord V>
struct Form<V> {
  static const Fields& fields() { return record_of(static_cast<const V*>(nullptr)).fields(); }
  static Json write(const V& value) { return internal::write(fields(), &value); }
  static Json schema(Json& definitions) { return refer(fields(), definitions); }
  static std::string read(const Json& json, V& value) {
    return internal::read(fields(), json, &value);
  }
};

template <>
struct Form<bool> {
  static Json write(bool value) { return value; }
  static Json schema(Json&) { return {{"type", "boolean"}}; }
  static std::string read(const Json& json, bool& value) {
    if (!json.is_boolean()) return ": neither true nor false";
    value = json.get<bool>();
    return {};
  }
};

template <std::integral V>
struct Form<V> {
  static Json write(V value) { return value; }
  static Json schema(Json&) { return {{"type", "integer"}}; }
  static std::string read(const Json& json, V& value) {
    const bool fits = json.is_number_unsigned()
                          ? std::in_range<V>(json.get<std::uint64_t>())
                          : json.is_number_integer() && std::in_range<V>(json.get<std::int64_t>());
    if (!fits) return ": no whole number, or one out of range";
    value = json.get<V>();
    return {};
  }
};

template <>
struct Form<double> {
  static Json write(double value) { return value; }
  static Json schema(Json&) { return {{"type", "number"}}; }
  static std::string read(const Json& json, double& value) {
    if (!json.is_number()) return ": no number";
    value = json.get<double>();
    return {};
  }
};

template <std::convertible_to<std::string_view> V>
struct Form<V> {
  static Json write(std::string_view value) { return std::string(value); }
  static Json schema(Json&) { return {{"type", "string"}}; }
  static std::string read(const Json& json, V& value) {
    if (!json.is_string()) return ": no text";
    if constexpr (std::is_same_v<V, std::string>) {
      value = json.get<std::string>();
      return {};
    }
    return ": a view of a text cannot be read back";
  }
};

template <int B, int S, int F, int J, int D, int K>
struct Form<Quantity<B, S, F, J, D, K>> {
  using Q = Quantity<B, S, F, J, D, K>;
  static constexpr bool kIsWhole = std::is_same_v<Q, Bytes>;
  static Json write(Q value) {
    if constexpr (kIsWhole)
      return std::llround(value.in_base());
    else
      return value.in_base();
  }
  static Json schema(Json&) { return {{"type", kIsWhole ? "integer" : "number"}}; }
  static std::string read(const Json& json, Q& value) {
    if constexpr (kIsWhole) {
      std::int64_t bytes = 0;
      if (auto fault = Form<std::int64_t>::read(json, bytes); !fault.empty()) return fault;
      value = Q::from_base(static_cast<double>(bytes));
      return {};
    }
    if (!json.is_number()) return ": no number";
    value = Q::from_base(json.get<double>());
    return {};
  }
};

template <class E>
requires std::is_enum_v<E>
struct Form<E> {
  static const yaml::Names<E>& names() { return yaml_names(static_cast<const E*>(nullptr)); }
  static Json write(E value) { return names().name_of(value); }
  static Json schema(Json&) {
    Json words = Json::array();
    for (const auto& name : names().entries()) words.push_back(name.text);
    return {{"enum", std::move(words)}};
  }
  static std::string read(const Json& json, E& value) {
    const auto found = json.is_string() ? names().find(json.get<std::string>()) : std::nullopt;
    if (!found) return ": none of " + words_of(names().entries());
    value = *found;
    return {};
  }
};

template <class V>
struct Form<std::optional<V>> {
  static Json write(const std::optional<V>& value) {
    return value ? Form<V>::write(*value) : Json(nullptr);
  }
  static Json schema(Json& definitions) { return or_null(Form<V>::schema(definitions)); }
  static std::string read(const Json& json, std::optional<V>& value) {
    value.reset();
    return json.is_null() ? std::string() : Form<V>::read(json, value.emplace());
  }
};

template <class V>
struct Form<std::vector<V>> {
  static Json write(const std::vector<V>& values) {
    Json list = Json::array();
    for (const V& value : values) list.push_back(Form<V>::write(value));
    return list;
  }
  static Json schema(Json& definitions) {
    return {{"type", "array"}, {"items", Form<V>::schema(definitions)}};
  }
  static std::string read(const Json& json, std::vector<V>& values) {
    if (!json.is_array()) return ": no list";
    values.clear();
    for (const Json& one : json) {
      if (auto fault = Form<V>::read(one, values.emplace_back()); !fault.empty())
        return "/" + std::to_string(values.size() - 1) + fault;
    }
    return {};
  }
};

template <class V, std::size_t N>
struct Form<std::array<V, N>> {
  static Json write(const std::array<V, N>& values) {
    return Form<std::vector<V>>::write({values.begin(), values.end()});
  }
  static Json schema(Json& definitions) {
    Json list = Form<std::vector<V>>::schema(definitions);
    list["minItems"] = list["maxItems"] = N;
    return list;
  }
};

/// An object whose keys are data, in the order of the pairs.
template <class V>
struct Form<std::vector<std::pair<std::string, V>>> {
  using Pairs = std::vector<std::pair<std::string, V>>;
  static Json write(const Pairs& pairs) {
    Json object = Json::object();
    for (const auto& [key, value] : pairs) object[key] = Form<V>::write(value);
    return object;
  }
  static Json schema(Json& definitions) {
    return {{"type", "object"}, {"additionalProperties", Form<V>::schema(definitions)}};
  }
  static std::string read(const Json& json, Pairs& pairs) {
    if (!json.is_object()) return ": no object";
    pairs.clear();
    for (const auto& [key, value] : json.items()) {
      pairs.emplace_back(key, V());
      if (auto fault = Form<V>::read(value, pairs.back().second); !fault.empty())
        return fault.insert(0, key).insert(0, "/");
    }
    return {};
  }
};

template <class V>
struct Form<std::map<std::string, V>> {
  static Json write(const std::map<std::string, V>& values) {
    Json object = Json::object();
    for (const auto& [key, value] : values) object[key] = Form<V>::write(value);
    return object;
  }
  static Json schema(Json& definitions) {
    return Form<std::vector<std::pair<std::string, V>>>::schema(definitions);
  }
  static std::string read(const Json& json, std::map<std::string, V>& values) {
    std::vector<std::pair<std::string, V>> pairs;
    auto fault = Form<std::vector<std::pair<std::string, V>>>::read(json, pairs);
    values = {std::make_move_iterator(pairs.begin()), std::make_move_iterator(pairs.end())};
    return fault;
  }
};

/// JSON of any kind; the `schema` of its field says more.
template <>
struct Form<Json> {
  static Json write(const Json& value) { return value; }
  static Json schema(Json&) { return Json::object(); }
  static std::string read(const Json& json, Json& value) {
    value = json;
    return {};
  }
};

template <class V>
inline constexpr bool kIsOptional = false;
template <class V>
inline constexpr bool kIsOptional<std::optional<V>> = true;

template <auto kFirst, auto... kRest>
decltype(auto) follow(const auto& object) {
  using Part = std::invoke_result_t<decltype(kFirst), decltype(object)>;
  if constexpr (sizeof...(kRest) == 0) {
    return std::invoke(kFirst, object);
  } else if constexpr (std::is_lvalue_reference_v<Part>) {
    return follow<kRest...>(std::invoke(kFirst, object));
  } else {  // a member of a temporary is copied
    const Part part = std::invoke(kFirst, object);
    return std::remove_cvref_t<decltype(follow<kRest...>(part))>(follow<kRest...>(part));
  }
}

template <class T, class Value>
using ValueOf = std::remove_cvref_t<std::invoke_result_t<const Value&, const T&>>;

}  // namespace internal

/// A member of a member, as the value of a field: `at<&Report::subject, &Subject::name>`. Members
/// may be functions.
template <auto... kMembers>  // NOLINTNEXTLINE(readability-identifier-naming): called as a function
inline constexpr auto at = [](const auto& object) { return internal::follow<kMembers...>(object); };

/// A text or a list by its members, as `at`; it has no value where it is empty.
template <auto... kMembers>  // NOLINTNEXTLINE(readability-identifier-naming): called as a function
inline constexpr auto unless_empty = [](const auto& object) {
  const auto& value = internal::follow<kMembers...>(object);
  return value.empty() ? std::nullopt : std::optional(value);
};

/// The schema of a text that is one of these words.
Json one_of(std::initializer_list<std::string_view> words);

template <class T>
class Record {
 public:
  /// A part of results. `name` is its name among the definitions of a schema; a group needs none.
  explicit Record(std::string name = {}, std::string doc = {}) {
    fields_.name = std::move(name);
    fields_.doc = std::move(doc);
  }
  /// A result of its own, whose first key is `schema` with this value: "foreshard.prediction/1".
  static Record result(std::string id, std::string doc) {
    Record record(id, std::move(doc));
    record.fields_.id = std::move(id);
    return record;
  }

  /// A key that is always there. `schema` replaces what follows from the type of the value.
  template <class Value>
  Record&& field(std::string key, Value value, std::string doc = {}, Json schema = {}) && {
    append(std::move(key), std::move(value), std::move(doc), std::move(schema));
    return std::move(*this);
  }
  /// The same, for a record that a loop fills.
  template <class Value>
  void append(std::string key, Value value, std::string doc = {}, Json schema = {}) {
    using V = internal::ValueOf<T, Value>;
    add(std::move(key), std::move(doc), true, std::move(schema), value, &internal::Form<V>::schema,
        [value](const void* object) -> std::optional<Json> {
          return internal::Form<V>::write(std::invoke(value, *static_cast<const T*>(object)));
        });
  }

  /// A key that is left out where the value, an optional, is empty.
  template <class Value>
  Record&& sometimes(std::string key, Value value, std::string doc = {}, Json schema = {}) && {
    append_sometimes(std::move(key), std::move(value), std::move(doc), std::move(schema));
    return std::move(*this);
  }
  /// The same, for a record that a loop fills.
  template <class Value>
  void append_sometimes(std::string key, Value value, std::string doc = {}, Json schema = {}) {
    using V = internal::ValueOf<T, Value>;
    static_assert(internal::kIsOptional<V>, "only an optional value can be left out");
    using Form = internal::Form<typename V::value_type>;
    add(std::move(key), std::move(doc), false, std::move(schema), value, &Form::schema,
        [value](const void* object) -> std::optional<Json> {
          const auto& held = std::invoke(value, *static_cast<const T*>(object));
          return held ? std::optional(Form::write(*held)) : std::nullopt;
        });
  }

  /// A nested object with the fields of `group`; `value` gives the object that they read.
  template <class Value, class Part>  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved
  Record&& group(std::string key, Value value, Record<Part> group, std::string doc = {}) && {
    static_assert(std::is_same_v<internal::ValueOf<T, Value>, Part>);
    fields_.fields.push_back(
        {.key = std::move(key),
         .doc = std::move(doc),
         .is_always_there = true,
         .schema_of_value = {},
         .write = [value, fields = group.fields()](const void* object) -> std::optional<Json> {
           const auto& part = std::invoke(value, *static_cast<const T*>(object));
           return internal::write(fields, &part);
         },
         .read = {},
         .schema =
             [fields = group.fields()](Json& definitions) {
               return internal::object_schema(fields, definitions);
             }});
    return std::move(*this);
  }
  /// A group that reads this same object.
  Record&& group(std::string key, Record group, std::string doc = {}) && {
    return std::move(*this).group(std::move(key), std::identity(), std::move(group),
                                  std::move(doc));
  }

  /// Adds the fields of another record to this object; `value` gives the object that they read.
  template <class Value, class Part>
  Record&& with(Value value, const Record<Part>& part) && {
    static_assert(std::is_same_v<internal::ValueOf<T, Value>, Part>);
    for (internal::Field field : part.fields().fields) {
      field.write = [value, write = std::move(field.write)](const void* object) {
        const auto& held = std::invoke(value, *static_cast<const T*>(object));
        return write(&held);
      };
      field.read = {};
      fields_.fields.push_back(std::move(field));
    }
    return std::move(*this);
  }

  const internal::Fields& fields() const { return fields_; }

 private:
  template <class Value, class Write>
  void add(std::string key, std::string doc, bool is_always_there, Json schema_of_value,
           Value value, Json (*schema)(Json&), Write write) {
    for (const internal::Field& field : fields_.fields) FORESHARD_CHECK(field.key != key);
    std::function<std::string(const Json&, void*)> read;
    if constexpr (std::is_member_object_pointer_v<Value>)
      read = [value](const Json& json, void* object) {
        auto& member = static_cast<T*>(object)->*value;
        return internal::Form<std::remove_cvref_t<decltype(member)>>::read(json, member);
      };
    fields_.fields.push_back({std::move(key), std::move(doc), is_always_there,
                              std::move(schema_of_value), std::move(write), std::move(read),
                              schema});
  }

  internal::Fields fields_;
};

/// `object` as JSON, by its record.
template <class T>
Json write(const T& object) {
  return internal::Form<T>::write(object);
}

/// JSON Schema (draft 07) of what `write` makes of a T.
template <class T>
Json schema() {
  return internal::schema(record_of(static_cast<const T*>(nullptr)).fields());
}

/// What `write` made of a T. Keys of computed fields and unknown keys are skipped.
/// \return kInvalidInput with the place in the JSON and what is wrong there: a missing key, or a
///     value of another kind.
template <class T>
Result<T> read(const Json& json) {
  T object;
  const std::string fault = internal::Form<T>::read(json, object);
  if (!fault.empty()) return Error{Error::Code::kInvalidInput, fault};
  return object;
}

/// What `write` made of a T, under `key` of an object.
/// \return as `read`, with the place from the object on.
template <class T>
Result<T> read_at(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  if (found == json.end()) return Error{Error::Code::kInvalidInput, "/" + key + ": missing"};
  auto value = read<T>(*found);
  if (value.has_value()) return value;
  return Error{value.error().code, "/" + key + value.error().message};
}

/// JSON text with line breaks and `indent` spaces a level, and a line break at its end. Bytes that
/// are no UTF-8 become U+FFFD.
std::string text_of(const Json& json, int indent);

}  // namespace foreshard::record
