/// \file
/// `Words`: a scalar or a list of scalars, as written, for a key whose type another key decides.
/// The reader of that key decides what the words must be.
#pragma once

#include <string>
#include <vector>

namespace foreshard::yaml {

struct Words {
  std::vector<std::string> words{};
  bool list = false;  ///< Written as a list; else there is one word.
};

}  // namespace foreshard::yaml
