/// \file
/// Cases of the form "this input is refused with a message that contains these texts", as the YAML
/// files of this folder hold them.
///
///     reads: cluster               # how inputs are read: a name of readers.cc
///     groups:
///     - text: "nodes: 1\n@@\n"     # the input of each case takes the place of @@
///       cases:
///       - {input: "node: dgx-h10", message: ["cluster.yaml:2:7", dgx-h100]}
///     - text: "node: dgx-h100\nnodes: 0\n"
///       cases:                     # or a case changes the text
///       - {change: "dgx-h100", to: dgx-h10, message: dgx-h100}
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/yaml/loader.h"
#include "base/yaml/words.h"

namespace foreshard::errors {

struct Case {
  std::string input;
  std::string change;
  std::string to;
  std::optional<std::int64_t> devices;
  std::string with;
  std::map<std::string, std::string> set;
  std::string format;
  yaml::Words message;
  std::string is;
  std::string begins;
  yaml::Words without;
};
const yaml::Table<Case>& yaml_table(const Case*);

struct Group {
  std::string text;
  std::string file;
  std::optional<std::int64_t> devices;
  std::string with;
  std::string begins;
  std::optional<Error::Code> code;
  std::vector<Case> cases;
};
const yaml::Table<Group>& yaml_table(const Group*);

struct File {
  std::string reads;
  std::map<std::string, std::string> parts;
  std::map<std::string, std::string> files;
  std::vector<Group> groups;
};
const yaml::Table<File>& yaml_table(const File*);

/// What a reader is given.
struct Question {
  std::string text;
  std::optional<std::int64_t> devices;
  std::string with;
  std::map<std::string, std::string> set;
  std::string format;
  std::filesystem::path folder;  ///< Holds the `files`, and is this question's own.
};

/// What the reader of that name says of the text; nothing if it accepts it.
/// \return null if there is no such reader.
using Reader = Status (*)(const Question&);
Reader reader_called(const std::string& name);

}  // namespace foreshard::errors

namespace foreshard {

const yaml::Names<Error::Code>& yaml_names(const Error::Code*);
}  // namespace foreshard
