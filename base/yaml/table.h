/// \file
/// `Table<T>`: the keys of a YAML mapping, written down once. The same table reads and checks a
/// file, prints what was understood, and generates the JSON Schema and the reference page.
///
///     struct Nic { BytesPerSecond bandwidth; std::int64_t count = 1; };
///     inline const yaml::Table<Nic>& yaml_table(const Nic*) {
///       static const auto table = yaml::Table<Nic>("nic", "A network adapter of a node.")
///           .required("bandwidth", &Nic::bandwidth, "Rate of one direction.", yaml::positive())
///           .optional("count", &Nic::count, "Number of NICs.", yaml::at_least(1));
///       return table;
///     }
///
/// Members may be bool, integers, double, std::string, quantities, enums with `yaml_names`,
/// std::optional, std::vector, std::map from strings, `Sourced`, `Ref`, `Words`, `Written`, and
/// structs with a `yaml_table`. The default of an optional key is what T's constructor leaves in
/// the member.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/yaml/type.h"

namespace foreshard::yaml {

template <class T>
class Table {
 public:
  /// `name` appears in messages ("unknown key 'x' in nic") and heads the documentation.
  Table(std::string name, std::string doc) : defaults_(std::make_unique<T>()) {
    fields_.name = std::move(name);
    fields_.doc = std::move(doc);
    fields_.defaults = defaults_.get();
  }

  template <class M, class... Constraints>
  Table&& required(std::string key, M T::*member, std::string doc, Constraints... constraints) && {
    add(std::move(key), member, std::move(doc), true, {std::move(constraints)...});
    return std::move(*this);
  }
  template <class M, class... Constraints>
  Table&& optional(std::string key, M T::*member, std::string doc, Constraints... constraints) && {
    add(std::move(key), member, std::move(doc), false, {std::move(constraints)...});
    return std::move(*this);
  }

  /// `Ref<T>` looks for names in this folder of the catalogue.
  Table&& folder(std::string name) && {
    fields_.folder = std::move(name);
    return std::move(*this);
  }

  /// A condition between members, checked when each is valid: `fault(object)` returns what is
  /// wrong, or an empty string. The message points at `key`.
  template <class Fault>
  Table&& check(std::string key, Fault fault) && {
    fields_.checks.push_back({std::move(key), [fault = std::move(fault)](const void* object) {
                                return std::string(fault(*static_cast<const T*>(object)));
                              }});
    return std::move(*this);
  }

  const internal::Fields& fields() const { return fields_; }

 private:
  template <class M>
  void add(std::string key, M T::*member, std::string doc, bool required,
           std::vector<Constraint> constraints) {
    for (const internal::Field& field : fields_.fields) FORESHARD_CHECK(field.key != key);
    const auto* object = reinterpret_cast<const char*>(defaults_.get());
    const auto* part = reinterpret_cast<const char*>(&(defaults_.get()->*member));
    fields_.fields.push_back({std::move(key), std::move(doc), required,
                              static_cast<std::size_t>(part - object), &type_of<M>,
                              std::move(constraints)});
  }

  std::unique_ptr<T> defaults_;
  internal::Fields fields_;
};

}  // namespace foreshard::yaml
