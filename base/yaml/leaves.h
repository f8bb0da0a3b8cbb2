/// \file
/// A YAML (or JSON) document that is no type of ours, as the list of its values. Callers are the
/// import and export of launch files (strategies/launch/) and the inputs of a study.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foreshard::yaml {

struct Leaf {
  std::string path;                  ///< Keys and positions of lists with dots between: "a.b.0".
  std::vector<std::string> words{};  ///< The scalar, or the items of a list of scalars; null: none.
  bool list = false;
  std::string place{};  ///< "file:line:column"
};

/// The values in the order of the document; a mapping without keys has none.
/// \param name  stands for the document in messages.
/// \return kInvalidInput if it is empty or no YAML, or has what `Loader` refuses (tags, merge keys,
///     several documents, duplicate keys, sizes beyond its limits).
Result<std::vector<Leaf>> leaves(std::string_view text, std::string_view name);

}  // namespace foreshard::yaml
