// Cuts a command line or a shell script into settings and prints settings as one
// (internal/formats.h), for the format megatron. Variables that the script does not set stay as
// they are, and their words are refused later.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/limits.h"
#include "base/shell_words.h"
#include "base/text.h"

#include "strategies/launch/internal/formats.h"

namespace foreshard::launch::internal {
namespace {

// The end of the variable's name that begins at `at`; `at` if no name begins there.
std::size_t end_of_name(std::string_view text, std::size_t at) {
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
  if (at == text.size() || !is_letter(static_cast<unsigned char>(text[at]))) return at;
  while (at < text.size() && (is_letter(static_cast<unsigned char>(text[at])) ||
                              std::isdigit(static_cast<unsigned char>(text[at])) != 0))
    ++at;
  return at;
}

bool is_name(std::string_view text) {
  return !text.empty() && end_of_name(text, 0) == text.size();
}

// Evaluates whole numbers, + - * / % and parentheses, as in $(( )).
class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}

  std::optional<std::int64_t> value() {
    const std::int64_t result = sum(0);
    skip();
    return sound_ && at_ == text_.size() ? std::optional(result) : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool takes(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::int64_t failed() {
    sound_ = false;
    return 0;
  }
  std::int64_t sum(int depth) {
    std::int64_t left = product(depth);
    while (sound_) {
      const bool adds = takes('+');
      if (!adds && !takes('-')) break;
      const std::int64_t right = product(depth);
      const bool overflows = adds ? __builtin_add_overflow(left, right, &left)
                                  : __builtin_sub_overflow(left, right, &left);
      if (overflows) return failed();
    }
    return left;
  }
  std::int64_t product(int depth) {
    std::int64_t left = number(depth);
    while (sound_) {
      const bool multiplies = takes('*');
      const bool divides = !multiplies && takes('/');
      if (!multiplies && !divides && !takes('%')) break;
      const std::int64_t right = number(depth);
      if (multiplies) {
        if (__builtin_mul_overflow(left, right, &left)) return failed();
      } else if (right < 1) {
        return failed();
      } else {
        left = divides ? left / right : left % right;
      }
    }
    return left;
  }
  std::int64_t number(int depth) {
    if (depth > limits::kDepth) return failed();
    if (takes('(')) {
      const std::int64_t inner = sum(depth + 1);
      if (!takes(')')) sound_ = false;
      return inner;
    }
    skip();
    std::int64_t result = 0;
    const char* begin = text_.data() + at_;
    const auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), result);
    if (status != std::errc()) sound_ = false;
    at_ += static_cast<std::size_t>(end - begin);
    return result;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool sound_ = true;
};

// Reads a script's options from arrays (ARGS=( --num-layers 32 )), from texts (ARGS="--num-layers
// 32") and from its program's arguments, and their values from variables. Everything else in the
// script, and what the shell would run, is skipped. A variable counts as unknown if it is set
// inside a condition or a loop, or comes from the environment without a default.
class Script {
 public:
  explicit Script(const std::string& name) : name_(name) {}

  Status read(std::string_view text, int depth = 0) {
    const auto words = shell_words(text);
    if (!words) return Error{words.error().code, name_ + ": " + words.error().message};
    for (const std::string& word : *words) FORESHARD_TRY(take(word, depth));
    return {};
  }

  std::vector<Setting> settings() {
    for (Setting& setting : settings_) {
      setting.list = setting.words.size() > 1;
      if (setting.words.empty()) setting.words.emplace_back("true");
    }
    return std::move(settings_);
  }

 private:
  Status take(const std::string& word, int depth) {
    if (word.starts_with("--") && word.size() > 2) {
      const std::size_t equals = word.find('=');
      settings_.push_back({.key = word.substr(0, equals), .place = name_});
      if (equals != std::string::npos)
        settings_.back().words.push_back(expanded(word.substr(equals + 1)));
      inside_ = equals == std::string::npos;
      return {};
    }
    if (word == ")" || word.ends_with("=(") || word.ends_with(".py") || word == "&&" ||
        word == ";" || word == "|" || contains(word, "[@]") || contains(word, "[*]") ||
        holds_options(word)) {
      inside_ = false;
      return {};
    }
    if (const auto assigned = assignment_in(word)) return assign(*assigned, depth);
    if (inside_) {
      settings_.back().words.push_back(expanded(word));
    } else if (word == "if" || word == "case" || word == "for" || word == "while") {
      ++branches_;
    } else if (branches_ > 0 && (word == "fi" || word == "esac" || word == "done")) {
      --branches_;
    }
    return {};
  }

  struct Assignment {
    std::string name;
    std::string value;
  };

  // NAME=value. After an option only a name in capitals is an assignment: in `--key name=value`,
  // `name=value` is the option's value.
  std::optional<Assignment> assignment_in(const std::string& word) const {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return std::nullopt;
    std::string name = word.substr(0, equals);
    if (name.ends_with('+')) name.pop_back();
    const bool small =
        std::ranges::any_of(name, [](unsigned char c) { return std::islower(c) != 0; });
    if (!is_name(name) || (inside_ && small)) return std::nullopt;
    std::string value = word.substr(equals + 1);
    if (value.ends_with(';')) value.pop_back();
    return Assignment{std::move(name), std::move(value)};
  }

  Status assign(const Assignment& assigned, int depth) {
    constexpr int kDeepest = 4;
    inside_ = false;
    const std::size_t begin = assigned.value.find_first_not_of(" \t\r\n");
    if (begin != std::string::npos && assigned.value.compare(begin, 2, "--") == 0) {
      options_.insert(assigned.name);
      if (depth < kDeepest) FORESHARD_TRY(read(assigned.value, depth + 1));
      inside_ = false;
      return {};
    }
    if (branches_ > 0)
      values_.erase(assigned.name);
    else
      values_.insert_or_assign(assigned.name, expanded(assigned.value));
    return {};
  }

  bool holds_options(const std::string& word) const {
    if (!word.starts_with('$')) return false;
    const bool braces = word.starts_with("${") && word.ends_with('}');
    return options_.contains(braces ? word.substr(2, word.size() - 3) : word.substr(1));
  }

  // The value of a variable, written as after `$` or within `${}`; nothing if it has none.
  std::optional<std::string> value_of(std::string_view name, int depth) const {
    const std::size_t sign = name.find_first_of(":-=");
    const auto known = values_.find(name.substr(0, sign));
    const bool empty_counts = sign == std::string_view::npos || name[sign] != ':';
    if (known != values_.end() && (empty_counts || !known->second.empty())) return known->second;
    if (sign == std::string_view::npos) return std::nullopt;
    std::string_view otherwise = name.substr(sign);
    if (otherwise.starts_with(':')) otherwise.remove_prefix(1);
    if (!otherwise.starts_with('-') && !otherwise.starts_with('=')) return std::nullopt;
    return expanded(otherwise.substr(1), depth + 1);
  }

  // Where the parenthesis that opens after the `$` at `at` is closed; the end if it is not.
  static std::size_t end_of_arithmetic(std::string_view text, std::size_t at) {
    int open = 0;
    for (std::size_t end = at + 1; end < text.size(); ++end) {
      open += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
      if (open == 0) return end + 1;
    }
    return text.size();
  }

  std::string expanded(std::string_view text, int depth = 0) const {
    constexpr int kDeepest = 8;  // defaults in defaults
    if (depth > kDeepest) return std::string(text);
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view rest = text.substr(at);
      std::size_t end = at + 1;
      std::optional<std::string> value;
      if (rest.starts_with("$((")) {
        end = end_of_arithmetic(text, at);
        const std::string_view whole = text.substr(at, end - at);
        if (whole.ends_with("))") && whole.size() > 5)
          if (const auto sum = Arithmetic(with_values(whole.substr(3, whole.size() - 5))).value())
            value = std::to_string(*sum);
      } else if (rest.starts_with("${")) {
        const std::size_t close = std::min(text.find('}', at), text.size());
        end = std::min(close + 1, text.size());
        value = value_of(text.substr(at + 2, close - at - 2), depth);
      } else if (rest.starts_with('$')) {
        end = std::max(end, end_of_name(text, at + 1));
        value = value_of(text.substr(at + 1, end - at - 1), depth);
      }
      result += value ? *value : std::string(text.substr(at, end - at));
      if (result.size() > limits::raised(limits::kExpanded)) return std::string(text);
      at = end;
    }
    return result;
  }

  // An arithmetic expression with its names replaced by numbers.
  std::string with_values(std::string_view text) const {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::max(at + 1, end_of_name(text, at));
      const std::string_view name = text.substr(at, end - at);
      const auto known = values_.find(name);
      if (known != values_.end())
        result += known->second;
      else if (name != "$" && name != "{" && name != "}")
        result += name;
      if (result.size() > limits::raised(limits::kExpanded)) return {};
      at = end;
    }
    return result;
  }

  const std::string& name_;
  std::vector<Setting> settings_;
  std::map<std::string, std::string, std::less<>> values_;
  std::set<std::string> options_;  // variables that hold options
  int branches_ = 0;               // conditions and loops around the word
  bool inside_ = false;            // after an option, where its values stand
};

}  // namespace

Result<std::vector<Setting>> cut_words(std::string_view text, const std::string& name) {
  Script script(name);
  FORESHARD_TRY(script.read(text));
  return script.settings();
}

std::string print_words(const std::vector<OutputSetting>& settings) {
  std::string text;
  for (const OutputSetting& setting : settings) {
    if (setting.kind == Kind::kSwitch && setting.words.front() == "false") continue;
    if (!text.empty()) text += " \\\n";
    text += setting.key;
    if (setting.kind == Kind::kSwitch) continue;
    for (const std::string& word : setting.words) text += " " + shell_word(word);
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace foreshard::launch::internal
