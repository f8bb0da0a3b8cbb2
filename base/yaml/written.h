/// \file
/// `Written`: a value of any shape, kept as text, for a key whose value another reader takes: an
/// override that is kept for later, an object that another loader reads.
#pragma once

#include <string>

namespace foreshard::yaml {

struct Written {
  std::string text{};  ///< One line: a scalar or a flow collection that reads back as the value.

  bool operator==(const Written&) const = default;
};

}  // namespace foreshard::yaml
