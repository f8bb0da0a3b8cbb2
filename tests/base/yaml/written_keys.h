/// \file
/// The keys that a YAML file writes, and other values for each: what a test of keys that change
/// nothing goes through.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace foreshard {

/// A value that is no list and no mapping.
struct WrittenKey {
  std::string path;  ///< As `--set` takes it: "forms.0.hop.nvlink".
  std::string text;
};
/// All of them, aliases expanded, in the order of the file. \pre `text` is YAML.
std::vector<WrittenKey> written_keys(const std::string& text);

/// The path without places in lists: "forms.hop.nvlink".
std::string general(const std::string& path);

/// Words that are legal elsewhere, by `general` path; the empty path: anywhere.
using WordPool = std::map<std::string, std::set<std::string>>;

/// Other values for the key, the likeliest to be legal first: numbers around it with the same unit,
/// the other truth value, other words.
std::vector<std::string> other_values(const WrittenKey& key, const WordPool& pool);

}  // namespace foreshard
