// Cuts topology.conf and topology.yaml into lines (internal/slurm_lines.h), for slurm.cc. Lines
// keep the number that they have in the file.
#include "topology/import/internal/slurm_lines.h"

#include <algorithm>
#include <optional>

#include "base/limits.h"

#include "topology/internal/words.h"

namespace foreshard::internal {
namespace {

/// "key: value" with what is indented below it; an entry of a list has the key "-".
struct YamlItem {
  std::string key;
  std::string value;
  std::int64_t line = 0;
  std::vector<YamlItem> below;

  const YamlItem* find(std::string_view wanted) const {
    const auto found = std::ranges::find(below, wanted, &YamlItem::key);
    return found == below.end() ? nullptr : &*found;
  }
  std::string text_of(std::string_view wanted) const {
    const YamlItem* item = find(wanted);
    return item == nullptr ? std::string() : item->value;
  }
};

std::string_view without_blanks(std::string_view text) {
  const auto begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  text.remove_prefix(begin);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

/// The scalar without quotes; a YAML list ("[a, b]", unlike the host list "tux[0-1]") loses its
/// brackets.
std::string scalar(std::string_view text) {
  text = without_blanks(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    return std::string(text.substr(1, text.size() - 2));
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::string(text);
  std::string list;
  for (const char c : text.substr(1, text.size() - 2))
    if (c != ' ' && c != '"' && c != '\'') list += c;
  return list;
}

class YamlTree {
 public:
  std::variant<YamlItem, SlurmFault> read(std::string_view text) {
    std::int64_t number = 0;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      ++number;
      if (auto fault = read_line(text.substr(begin, end - begin), number)) return *std::move(fault);
      begin = end + 1;
    }
    return std::move(root_);
  }

 private:
  struct Open {
    YamlItem* item;
    std::size_t indent;
  };

  std::optional<SlurmFault> read_line(std::string_view line, std::int64_t number) {
    std::size_t comment = line.find('#');
    while (comment != std::string_view::npos && comment > 0 && line[comment - 1] != ' ' &&
           line[comment - 1] != '\t')
      comment = line.find('#', comment + 1);
    line = line.substr(0, comment);
    std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    line = without_blanks(line.substr(indent));
    if (line.empty() || line == "---" || line == "...") return std::nullopt;
    while (line.starts_with("- ") || line == "-") {
      close(indent, true);
      if (auto fault = open("-", {}, indent, number)) return fault;
      const std::size_t next = std::min(line.find_first_not_of(' ', 1), line.size());
      line.remove_prefix(next);
      indent += next;
      if (line.empty()) return std::nullopt;
    }
    if (line.front() == '{')
      return SlurmFault{number, "braces: of YAML, only indented lines are read here"};
    const auto colon = line.find(':');
    const bool has_key =
        colon != std::string_view::npos && (colon + 1 == line.size() || line[colon + 1] == ' ');
    if (!has_key) {  // a value of a list
      if (open_.empty() || open_.back().item->key != "-")
        return SlurmFault{number, "'" + shown(line) + "' is not 'key: value'"};
      open_.back().item->value = scalar(line);
      return std::nullopt;
    }
    close(indent, false);
    return open(scalar(line.substr(0, colon)), scalar(line.substr(colon + 1)), indent, number);
  }

  // A dash may stand right below the key whose list it begins.
  void close(std::size_t indent, bool dash) {
    while (!open_.empty() &&
           (open_.back().indent > indent ||
            (open_.back().indent == indent && (!dash || open_.back().item->key == "-"))))
      open_.pop_back();
  }

  std::optional<SlurmFault> open(std::string key, std::string value, std::size_t indent,
                                 std::int64_t number) {
    if (open_.size() >= static_cast<std::size_t>(limits::kDepth))
      return SlurmFault{number, "nested deeper than " + std::to_string(limits::kDepth)};
    // Items below `parent` are closed by now, so no pointer dangles when `parent` grows.
    YamlItem& parent = open_.empty() ? root_ : *open_.back().item;
    parent.below.push_back({std::move(key), std::move(value), number, {}});
    open_.push_back({&parent.below.back(), indent});
    return std::nullopt;
  }

  YamlItem root_;
  std::vector<Open> open_;
};

/// A list's entries joined by commas, or the one value.
std::string list_of(const YamlItem& item, std::string_view key) {
  const YamlItem* found = item.find(key);
  if (found == nullptr) return {};
  std::string list = found->value;
  for (const auto& entry : found->below) list += (list.empty() ? "" : ",") + entry.value;
  return list;
}

/// The entries of `list` in `topology`, each as a line of topology.conf.
std::vector<SlurmLine> lines_below(const YamlItem& topology, std::string_view list,
                                   std::string_view entry, const std::string& name) {
  std::vector<SlurmLine> lines;
  const YamlItem* found = topology.find(list);
  if (found == nullptr) return lines;
  for (const auto& item : found->below) {
    SlurmLine line{item.line, name + "=" + item.text_of(entry)};
    for (const auto& [key, word] : {std::pair{"nodes", " Nodes="}, {"children", " Switches="}})
      if (const std::string hosts = list_of(item, key); !hosts.empty()) line.text += word + hosts;
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::vector<SlurmLine> slurm_lines(std::string_view text) {
  std::vector<SlurmLine> lines;
  bool joined = false;
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    line = line.substr(0, std::min(line.find('#'), line.size()));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
      line.remove_suffix(1);
    const bool goes_on = !line.empty() && line.back() == '\\';
    if (goes_on) line.remove_suffix(1);
    if (joined) {
      lines.back().text += line;
    } else if (!line.empty() || goes_on) {
      lines.push_back({number, std::string(line)});
    }
    joined = goes_on && !lines.empty();
  }
  return lines;
}

bool is_slurm_yaml(std::string_view text) {
  for (const auto& line : slurm_lines(text.substr(0, std::size_t{64} * 1024))) {
    const auto words = words_of(line.text);
    if (words.empty() || words[0] == "---") continue;
    return words.size() >= 2 && words[0] == "-" && words[1].starts_with("topology:");
  }
  return false;
}

std::variant<SlurmTopology, SlurmFault> slurm_yaml(std::string_view text) {
  const auto read = YamlTree().read(text);
  if (const auto* fault = std::get_if<SlurmFault>(&read)) return *fault;
  const auto& entries = std::get<YamlItem>(read).below;
  if (entries.empty()) return SlurmFault{1, "holds no '- topology: NAME'"};
  auto chosen = std::ranges::find_if(
      entries, [](const YamlItem& each) { return each.text_of("cluster_default") == "true"; });
  if (chosen == entries.end()) chosen = entries.begin();

  SlurmTopology topology;
  topology.name = chosen->text_of("topology");
  for (const auto& each : entries)
    if (&each != &*chosen) topology.others.push_back(each.text_of("topology"));
  if (const YamlItem* tree = chosen->find("tree"))
    topology.lines = lines_below(*tree, "switches", "switch", "SwitchName");
  if (const YamlItem* block = chosen->find("block"))
    topology.lines = lines_below(*block, "blocks", "block", "BlockName");
  if (topology.lines.empty())
    return SlurmFault{chosen->line,
                      "topology '" + shown(topology.name) +
                          "' has neither a tree: with switches: nor a block: with blocks:, the "
                          "two that name what joins hosts; mark another one cluster_default: "
                          "true, or describe the cluster by hand (docs/fabrics.md)"};
  return topology;
}

}  // namespace foreshard::internal
