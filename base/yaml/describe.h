/// \file
/// Further uses of a `Table`: the JSON Schema for editors, the reference page, an echo of what was
/// read, and the few lines from which an object can be read again.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "base/yaml/table.h"

namespace foreshard::yaml {

namespace internal {
nlohmann::ordered_json json_schema(const Type& type);
std::string reference(const Type& type);
std::string echo(const Type& type, const void* object);
Result<std::string> brief(const Type& type, const void* object, Loader& loader);
}  // namespace internal

/// JSON Schema (draft 07) of the files that `Loader` accepts as a T, as far as a schema can say it.
/// The caller includes <nlohmann/json.hpp>, which this header only names.
template <class T>
auto json_schema() {
  return internal::json_schema(type_of<T>());
}

/// Markdown: one section with a table of keys for T and for each mapping inside it.
template <class T>
std::string reference() {
  return internal::reference(type_of<T>());
}

/// All of `object` as YAML, defaults included. It reads back as the same object, provided that the
/// object obeys its table: an optional member without a legal default belongs in a std::optional.
template <class T>
std::string echo(const T& object) {
  return internal::echo(type_of<T>(), &object);
}

/// `object` as YAML without the keys that have their defaults. A `Ref` with a name is written as
/// that name; where its value differs from what the loader finds under the name, as `extends` with
/// the keys that differ. It reads back as the same object, on the condition of `echo`; what cannot
/// be said by `extends` (an entry that is taken out of a map) is written in full.
/// \return the loader's error for a name that it does not find.
template <class T>
Result<std::string> brief(const T& object, Loader& loader) {
  return internal::brief(type_of<T>(), &object, loader);
}

}  // namespace foreshard::yaml
