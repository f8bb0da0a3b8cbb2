/// \file
/// A text of YAML line by line, each with the keys that it stands below: "model.layers: 3".
#pragma once

#include "tests/test.h"

namespace foreshard {

inline std::vector<std::string> dotted_lines(const std::string& yaml) {
  std::vector<std::string> lines;
  std::vector<std::string> keys;
  std::istringstream text(yaml);
  for (std::string line; std::getline(text, line);) {
    const std::size_t indent = line.find_first_not_of(' ');
    keys.resize(indent / 2);
    line.erase(0, indent);
    std::string dotted;
    for (const std::string& key : keys) dotted += key + ".";
    lines.push_back(dotted + line);
    keys.push_back(line.substr(0, line.find(':')));
  }
  return lines;
}

}  // namespace foreshard
