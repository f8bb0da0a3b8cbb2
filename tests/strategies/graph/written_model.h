/// \file
/// Models of tests in the words of their files.
#pragma once

#include "tests/test.h"

#include "strategies/graph/model.h"

namespace foreshard {

/// \param keys  as "name: m, layers: 2, hidden: 8, heads: 2, sequence: 4".
inline Model written_model(const std::string& keys) {
  return value_of(yaml::Loader().read_text<Model>("{" + keys + "}", "model"));
}

}  // namespace foreshard
