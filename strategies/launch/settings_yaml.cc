// Cuts YAML and JSON into settings and prints them (internal/formats.h), for the formats that have
// such files.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/yaml/leaves.h"
#include "base/yaml/quoted.h"

#include "strategies/launch/internal/formats.h"

namespace foreshard::launch::internal {
namespace {

using Json = nlohmann::ordered_json;

// The setting that `${model.encoder_seq_length}` or, within the same section,
// `${.encoder_seq_length}` refers to, as OmegaConf resolves it; nullptr for any other text and for
// resolvers with arguments.
const Setting* meant_by(const std::string& text, const std::string& key,
                        const std::vector<Setting>& settings) {
  if (!text.starts_with("${") || !text.ends_with('}')) return nullptr;
  std::string path = text.substr(2, text.size() - 3);
  if (path.starts_with('.')) path = key.substr(0, key.rfind('.')) + path;
  const auto found =
      std::ranges::find_if(settings, [&](const Setting& each) { return each.key == path; });
  return found == settings.end() ? nullptr : &*found;
}

bool is_plain(const std::string& word) {
  const auto is_plain_character = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  };
  return !word.empty() && std::isalpha(static_cast<unsigned char>(word.front())) != 0 &&
         std::ranges::all_of(word, is_plain_character) && word != "no" && word != "yes" &&
         word != "null" && word != "true" && word != "false" && word != "on" && word != "off";
}

Json scalar(const OutputSetting& setting, const std::string& word) {
  const bool is_truth = setting.kind == Kind::kWord && (word == "true" || word == "false");
  if (setting.kind == Kind::kSwitch || is_truth) return word == "true";
  if (setting.kind == Kind::kCount || setting.kind == Kind::kNumber) {
    double number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    if (setting.kind == Kind::kCount) return static_cast<std::int64_t>(number);
    return number;
  }
  return word;
}

Json tree_of(const std::vector<OutputSetting>& settings) {
  Json tree = Json::object();
  for (const OutputSetting& setting : settings) {
    Json* at = &tree;
    for (std::size_t begin = 0; begin <= setting.key.size();) {
      const std::size_t end = std::min(setting.key.find('.', begin), setting.key.size());
      at = &(*at)[setting.key.substr(begin, end - begin)];
      begin = end + 1;
    }
    if (setting.list) {
      *at = Json::array();
      for (const std::string& word : setting.words) at->push_back(scalar(setting, word));
    } else {
      *at = scalar(setting, setting.words.front());
    }
  }
  return tree;
}

std::string yaml_scalar(const Json& value) {
  if (!value.is_string()) return value.dump();
  const auto word = value.get<std::string>();
  return is_plain(word) ? word : yaml::quoted(word);
}

void print(const Json& tree, std::size_t indent, std::string& text) {
  for (const auto& [key, value] : tree.items()) {
    text += std::string(indent, ' ') + key + ":";
    if (value.is_object()) {
      text += "\n";
      print(value, indent + 2, text);
    } else if (value.is_array()) {
      text += " [";
      for (std::size_t i = 0; i < value.size(); ++i)
        text += (i > 0 ? ", " : "") + yaml_scalar(value[i]);
      text += "]\n";
    } else {
      text += " " + yaml_scalar(value) + "\n";
    }
  }
}

}  // namespace

Result<std::vector<Setting>> cut_yaml(std::string_view text, const std::string& name) {
  FORESHARD_ASSIGN(auto leaves, yaml::leaves(text, name));
  std::vector<Setting> settings;
  settings.reserve(leaves.size());
  for (yaml::Leaf& leaf : leaves)
    settings.push_back(
        {std::move(leaf.path), std::move(leaf.words), leaf.list, std::move(leaf.place)});
  // A reference may lead to another reference; a long chain is taken for a cycle.
  for (int round = 0; round < 4; ++round) {
    for (Setting& setting : settings) {
      if (setting.words.size() != 1 || setting.list) continue;
      const Setting* meant = meant_by(setting.words.front(), setting.key, settings);
      if (meant == nullptr || meant == &setting) continue;
      const std::vector<std::string> words = meant->words;
      setting.list = meant->list;
      setting.words = words;
    }
  }
  return settings;
}

bool has_top_key(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == '\n';
    const std::size_t end = at + key.size();
    if (begins && end < text.size() && text[end] == ':') return true;
  }
  return false;
}

std::string print_yaml(const std::vector<OutputSetting>& settings) {
  std::string text;
  print(tree_of(settings), 0, text);
  return text;
}

std::string print_json(const std::vector<OutputSetting>& settings) {
  return tree_of(settings).dump(2) + "\n";
}

}  // namespace foreshard::launch::internal
