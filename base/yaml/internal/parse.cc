#include "base/yaml/internal/parse.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <sstream>
#include <unordered_map>
#include <utility>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/limits.h"

namespace foreshard::yaml::internal {

namespace {

// Ends the parse after a fatal diagnostic; it never leaves this file.
struct Stop {};

class Builder final : public YAML::EventHandler {
 public:
  Builder(int source, std::size_t most_values, Diagnostics& diagnostics)
      : source_(source), most_values_(most_values), diagnostics_(diagnostics) {}

  std::optional<Node> take() { return std::exchange(root_, std::nullopt); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0)
      stop(at(mark), "a second document begins here", "keep one document per file");
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark&, const std::string&) override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    count(at(mark));
    close(bare(Node::Shape::kNull, at(mark)), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted = tag == "!";
    const Mark place = at(mark, value.size() + (quoted ? 2 : 0));
    refuse_tag(place, tag);
    count(place);
    close(scalar_node(place, value, quoted), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto target = anchors_.find(anchor);
    if (target == anchors_.end()) stop(at(mark), "the alias stands inside what it repeats", {});
    close(copy(target->second, static_cast<int>(open_.size()), at(mark)), 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Shape::kList, at(mark), tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Shape::kMapping, at(mark), tag, anchor);
  }
  void OnSequenceEnd() override { close_top(); }
  void OnMapEnd() override { close_top(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    std::optional<Entry> entry;        // The key whose value comes next.
    bool keep_entry;                   // The key is neither a duplicate nor a merge key.
    std::map<std::string, int> lines;  // Key -> line, for the keys so far.
  };

  Mark at(const YAML::Mark& mark, std::size_t length = 1) const {
    return {source_, mark.line, mark.column,
            static_cast<int>(std::min<std::size_t>(length, 1 << 20))};
  }

  [[noreturn]] void stop(const Mark& mark, std::string message, std::string help) {
    diagnostics_.add(mark, std::move(message), std::move(help));
    throw Stop{};
  }

  void refuse_tag(const Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      stop(mark, "tags are not supported", "leave out the '!...'");
  }

  void count(const Mark& mark) {
    if (++nodes_ > most_values_)
      stop(mark, fmt::format("more than {} values, aliases expanded", most_values_), {});
  }

  void check_depth(int depth, const Mark& mark) {
    if (depth > limits::kDepth)
      stop(mark, fmt::format("nested more than {} levels deep", limits::kDepth), {});
  }

  void open(Node::Shape shape, const Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_tag(mark, tag);
    count(mark);
    check_depth(static_cast<int>(open_.size()) + 1, mark);
    if (expects_key())
      stop(mark, "a key must be a word, not a list or a mapping",
           "is a bracket before it not closed?");
    open_.push_back({.node = bare(shape, mark),
                     .anchor = anchor,
                     .entry = std::nullopt,
                     .keep_entry = true,
                     .lines = {}});
  }

  bool expects_key() const {
    return !open_.empty() && open_.back().node.shape == Node::Shape::kMapping &&
           !open_.back().entry;
  }

  void close_top() {
    Open top = std::move(open_.back());
    open_.pop_back();
    close(std::move(top.node), top.anchor);
  }

  // A finished node goes to its place in the innermost open collection.
  void close(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = copy(node, 0, node.mark);
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& top = open_.back();
    if (top.node.shape == Node::Shape::kList) {
      top.node.items.push_back(std::move(node));
    } else if (!top.entry) {
      take_key(top, std::move(node));
    } else {
      top.entry->value = std::move(node);
      if (top.keep_entry) top.node.entries.push_back(*std::move(top.entry));
      top.entry.reset();
    }
  }

  void take_key(Open& top, Node key) {
    if (key.shape != Node::Shape::kScalar) stop(key.mark, "a key must be a word", {});
    const auto [first, is_new] = top.lines.emplace(key.text, key.mark.line);
    const bool merges = key.text == "<<" && !key.quoted;
    if (!is_new)
      diagnostics_.add(key.mark, "duplicate key '" + key.text + "'",
                       fmt::format("first set at line {}", first->second + 1));
    else if (merges)
      diagnostics_.add(key.mark, "the merge key '<<' is not supported",
                       "repeat the keys, or put the shared ones into a file and write `extends: "
                       "<file>` at the top of this one");
    top.keep_entry = is_new && !merges;
    top.entry = Entry{.key = std::move(key.text), .key_mark = key.mark, .value = {}};
  }

  // Counts and measures as it goes, so that an alias bomb ends at the cap.
  Node copy(const Node& node, int depth, const Mark& alias) {
    count(alias);
    if (node.shape == Node::Shape::kList || node.shape == Node::Shape::kMapping)
      check_depth(depth + 1, alias);
    Node result = bare(node.shape, node.mark);
    result.text = node.text;
    result.quoted = node.quoted;
    for (const Node& item : node.items) result.items.push_back(copy(item, depth + 1, alias));
    for (const Entry& entry : node.entries)
      result.entries.push_back({entry.key, entry.key_mark, copy(entry.value, depth + 1, alias)});
    return result;
  }

  const int source_;
  std::size_t most_values_;
  Diagnostics& diagnostics_;
  int documents_ = 0;
  std::size_t nodes_ = 0;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::optional<Node> root_;
};

// The first byte that is no UTF-8 text, as Unicode 15 table 3-7 defines it, or nothing.
std::optional<std::size_t> first_bad_byte(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[i])) : 0u;
  };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    if (lead == 0) return i;
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4) return i;
    const unsigned lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(i + 1) < lowest || byte(i + 1) > highest) return i;
    for (std::size_t k = 2; k < length; ++k)
      if (byte(i + k) < 0x80 || byte(i + k) > 0xBF) return i;
    i += length;
  }
  return std::nullopt;
}

Mark mark_of(int source, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line_break = before.rfind('\n');
  const std::size_t start = line_break == std::string_view::npos ? 0 : line_break + 1;
  return {source, static_cast<int>(std::count(before.begin(), before.end(), '\n')),
          static_cast<int>(offset - start), 1};
}

std::string help_for(const Sources& sources, const Mark& mark) {
  std::istringstream lines(sources[mark.source].text);
  std::string line;
  for (int i = 0; i <= mark.line; ++i) std::getline(lines, line);
  if (line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string::npos)
    return "indent with spaces, not tabs";
  return {};
}

// `node` as a part of `source`.
void move_to(int source, Node& node) {
  node.mark.source = source;
  for (Node& item : node.items) move_to(source, item);
  for (Entry& entry : node.entries) {
    entry.key_mark.source = source;
    move_to(source, entry.value);
  }
}

// Documents without a fault, by their texts, for all loaders of the process: a table of measured
// steps reads the catalogue's files for each of its rows.
class Parsed {
 public:
  std::optional<Node> find(const std::string& text, std::size_t most_values, int source) const {
    const std::scoped_lock lock(mutex_);
    const auto known = documents_.find(text);
    if (known == documents_.end() || known->second.most_values != most_values) return std::nullopt;
    Node node = known->second.root;
    move_to(source, node);
    return node;
  }
  void keep(const std::string& text, std::size_t most_values, const Node& root) {
    constexpr std::size_t kMostBytes = std::size_t{8} << 20;
    const std::scoped_lock lock(mutex_);
    if (bytes_ + text.size() > kMostBytes) {
      documents_.clear();
      bytes_ = 0;
    }
    if (text.size() > kMostBytes) return;
    if (documents_.insert_or_assign(text, Document{most_values, root}).second)
      bytes_ += text.size();
  }

 private:
  struct Document {
    std::size_t most_values;
    Node root;
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Document> documents_;
  std::size_t bytes_ = 0;  // of their texts
};

Parsed& parsed() {
  static Parsed documents;
  return documents;
}

std::optional<Node> parse_anew(const Sources& sources, int source, std::size_t most_values,
                               Diagnostics& diagnostics) {
  const std::string& text = sources[source].text;
  if (const auto bad = first_bad_byte(text)) {
    const bool utf16 = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
    diagnostics.add(
        mark_of(source, text, *bad), "this is not a text file in UTF-8",
        utf16 ? "it is in UTF-16: iconv -f UTF-16 -t UTF-8 FILE > NEW.yaml"
              : fmt::format("found the byte 0x{:02x}", static_cast<unsigned char>(text[*bad])));
    return std::nullopt;
  }
  Builder builder(source, most_values, diagnostics);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop&) {
    return std::nullopt;
  } catch (const YAML::Exception& fault) {
    const Mark mark{source, std::max(fault.mark.line, 0), std::max(fault.mark.column, 0), 1};
    diagnostics.add(mark, "this is not YAML: " + fault.msg, help_for(sources, mark));
    return std::nullopt;
  }
  auto root = builder.take();
  if (!root || root->shape == Node::Shape::kNull) {
    diagnostics.add({source, 0, 0, 1}, "there is nothing in it", {});
    return std::nullopt;
  }
  return root;
}

}  // namespace

std::optional<Node> parse(const Sources& sources, int source, std::size_t most_values,
                          Diagnostics& diagnostics) {
  const std::string& text = sources[source].text;
  if (auto known = parsed().find(text, most_values, source)) return known;
  const std::size_t before = diagnostics.size();
  auto root = parse_anew(sources, source, most_values, diagnostics);
  if (root && diagnostics.size() == before) parsed().keep(text, most_values, *root);
  return root;
}

}  // namespace foreshard::yaml::internal
