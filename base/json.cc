#include "base/json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/quantity.h"

namespace foreshard {
namespace {

// Memory of values beside their characters: a number; a container with its first allocation; a
// key with its node.
constexpr std::size_t kValueBytes = 16;
constexpr std::size_t kTextBytes = 48;
constexpr std::size_t kContainerBytes = 80;
constexpr std::size_t kKeyBytes = 112;

std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 160;
  return std::string(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "");
}

void replace_first(std::string& text, std::string_view from, std::string_view to) {
  if (const auto place = text.find(from); place != std::string::npos)
    text.replace(place, from.size(), to);
}

// Builds a value from the parser's events (nlohmann's "SAX interface", whose names these are).
template <class Json>
class Builder {
 public:
  explicit Builder(const JsonFilter<Json>& keep)
      : keep_(keep),
        most_(static_cast<std::size_t>(limits::raised(limits::kJsonValues).in_base())) {}

  Result<Json> take() && {
    if (!why_.empty()) return Error{Error::Code::kInvalidInput, std::move(why_)};
    return std::move(root_);
  }

  bool null() { return use(kValueBytes) && put(nullptr); }
  bool boolean(bool value) { return use(kValueBytes) && put(value); }
  bool number_integer(std::int64_t value) { return use(kValueBytes) && put(value); }
  bool number_unsigned(std::uint64_t value) { return use(kValueBytes) && put(value); }
  bool number_float(double value, const std::string&) { return use(kValueBytes) && put(value); }
  bool string(std::string& value) {
    return use(kTextBytes + value.size()) && put(std::move(value));
  }
  bool binary(std::vector<std::uint8_t>&) { return stop("bytes are no JSON"); }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& key) {
    if (open_.size() == 1) root_key_ = key;
    open_.back().key = std::move(key);
    return use(kKeyBytes + open_.back().key.size());
  }
  bool parse_error(std::size_t, const std::string&, const typename Json::exception& fault) {
    return stop("no JSON: " + json_words(fault.what()));
  }

 private:
  static constexpr bool kIsOrdered = !std::is_same_v<Json, nlohmann::json>;
  struct Open {
    Json value;
    std::string key{};             // of the member that comes next
    std::set<std::string> keys{};  // so far, where the container does not tell
    std::size_t before = 0;        // used_ at its begin
  };

  bool stop(std::string why) {
    why_ = std::move(why);
    return false;
  }
  bool stop_at_root_key(const std::string& why) {
    return stop(root_key_.empty() ? why : shortened(root_key_) + ": " + why);
  }

  bool use(std::size_t bytes) {
    used_ += bytes;
    if (used_ <= most_) return true;
    return stop_at_root_key("more values than " + format(limits::raised(limits::kJsonValues)) +
                            " of memory hold; " + limits::kRemedy);
  }

  bool open(Json empty) {
    if (open_.size() >= static_cast<std::size_t>(limits::kDepth))
      return stop_at_root_key("nested deeper than " + std::to_string(limits::kDepth) + " levels");
    open_.push_back({.value = std::move(empty), .before = used_});
    return use(kContainerBytes);
  }

  bool close() {
    Json value = std::move(open_.back().value);
    const std::size_t before = open_.back().before;
    open_.pop_back();
    if (!open_.empty() && keep_ && !keep_(static_cast<int>(open_.size()), root_key_, value)) {
      used_ = before;
      return true;
    }
    return put(std::move(value));
  }

  bool put(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Open& around = open_.back();
    if (around.value.is_array()) {
      around.value.push_back(std::move(value));
      return true;
    }
    return add_member(around, std::move(value)) ||
           stop_at_root_key("key '" + shortened(around.key) + "' appears twice");
  }

  // \return whether the key is new.
  static bool add_member(Open& around, Json value) {
    auto& members = around.value.template get_ref<typename Json::object_t&>();
    if constexpr (kIsOrdered) {
      if (!around.keys.insert(around.key).second) return false;
      // The map's own insertion searches all keys before.
      static_cast<typename Json::object_t::Container&>(members).emplace_back(std::move(around.key),
                                                                             std::move(value));
      return true;
    } else {
      return members.try_emplace(std::move(around.key), std::move(value)).second;
    }
  }

  const JsonFilter<Json>& keep_;
  std::size_t most_;
  std::size_t used_ = 0;
  std::vector<Open> open_{};
  std::string root_key_{};
  Json root_{};
  std::string why_{};
};

}  // namespace

template <class Json>
Result<Json> parsed_json(std::string_view text, const JsonFilter<Json>& keep) {
  Builder<Json> builder(keep);
  Json::sax_parse(text, &builder);
  return std::move(builder).take();
}

template Result<nlohmann::json> parsed_json(std::string_view, const JsonFilter<nlohmann::json>&);
template Result<nlohmann::ordered_json> parsed_json(std::string_view,
                                                    const JsonFilter<nlohmann::ordered_json>&);

std::string schema_in(std::string_view text) {
  const auto json = parsed_json(text);
  if (!json || !json->is_object()) return {};
  const auto schema = json->find("schema");
  return schema != json->end() && schema->is_string() ? schema->get<std::string>() : std::string();
}

std::string json_words(std::string_view what) {
  if (const auto end = what.find("] "); what.starts_with('[') && end != std::string_view::npos)
    what.remove_prefix(end + 2);
  constexpr std::string_view kParse = "parse error at ";
  if (what.starts_with(kParse)) what.remove_prefix(kParse.size());
  std::string words(what);
  constexpr std::string_view kSyntax = "syntax error while parsing ";
  const auto begin = words.find(kSyntax);
  const auto dash = begin == std::string::npos ? begin : words.find(" - ", begin);
  if (dash != std::string::npos) words.erase(begin, dash + 3 - begin);
  constexpr std::string_view kType = "type must be ";
  constexpr std::string_view kBut = ", but is ";
  if (const auto but = words.find(kBut); words.starts_with(kType) && but != std::string::npos)
    return shortened("a value is " + words.substr(but + kBut.size()) + " instead of " +
                     words.substr(kType.size(), but - kType.size()));
  replace_first(words, "' not found", "' is missing");
  return shortened(std::move(words));
}

std::vector<std::string> first_object_keys(std::string_view text, std::size_t most_bytes) {
  std::vector<std::string> keys;
  const std::size_t start = text.find('{');
  if (start == std::string_view::npos) return keys;
  text = text.substr(start, most_bytes);
  std::size_t depth = 0;
  bool before_key = true;  // In the first object: after its brace or a comma.
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      const std::size_t begin = ++i;
      while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
      if (i >= text.size()) break;
      if (depth == 1 && before_key) keys.emplace_back(text.substr(begin, i - begin));
      before_key = false;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth <= 1) break;
      --depth;
    } else if (c == ',' && depth == 1) {
      before_key = true;
    }
  }
  return keys;
}

}  // namespace foreshard
