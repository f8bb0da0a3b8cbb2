#include "base/yaml/internal/scalars.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <variant>

#include "base/check.h"
#include "base/quantity.h"
#include "base/text.h"
#include "base/yaml/internal/wording.h"

namespace foreshard::yaml::internal {
namespace {

// A text from a file, short enough for a message.
std::string quoted(const std::string& text) {
  constexpr std::size_t kMost = 40;
  std::string result = "'";
  for (const char c : text.substr(0, kMost))
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return result + (text.size() > kMost ? "...'" : "'");
}

Complaint mismatch(const Node& node, const Type& type, const std::string& key, std::string help) {
  return {fmt::format("'{}' must be {}, found {}{}", key, expectation(type),
                      node.quoted ? "the quoted text " : "", quoted(node.text)),
          std::move(help)};
}

std::optional<Complaint> read_bool(const Node& node, const Type& type, const std::string& key,
                                   void* object) {
  if (node.quoted || (node.text != "true" && node.text != "false")) {
    static const std::vector<std::string> yes_words{"yes",  "Yes",  "on", "On",
                                                    "True", "TRUE", "1",  "true"};
    const bool yes = std::find(yes_words.begin(), yes_words.end(), node.text) != yes_words.end();
    return mismatch(node, type, key, std::string("write ") + (yes ? "true" : "true or false"));
  }
  *static_cast<bool*>(object) = node.text == "true";
  return std::nullopt;
}

std::optional<Complaint> read_integer(const Node& node, const Type& type, const std::string& key,
                                      void* object) {
  const std::string& text = node.text;
  const char* last = text.data() + text.size();
  std::int64_t value = 0;
  const auto [rest, status] = std::from_chars(text.data(), last, value);
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  const bool leading_zero = text.size() > first + 1 && text[first] == '0';
  if (node.quoted) return mismatch(node, type, key, "remove the quotes");
  if (status == std::errc::invalid_argument || rest != last)
    return mismatch(node, type, key, "write it with decimal digits alone, such as 4096");
  if (leading_zero) return mismatch(node, type, key, "write it without leading zeros");
  if (status == std::errc::result_out_of_range || value < type.lowest || value > type.highest)
    return Complaint{fmt::format("'{}' is out of range: {}", key, quoted(text)),
                     fmt::format("it must be between {} and {}", type.lowest, type.highest)};
  type.set_integer(object, value);
  return std::nullopt;
}

std::optional<Complaint> read_real(const Node& node, const Type& type, const std::string& key,
                                   void* object) {
  const std::string& text = node.text;
  const char* last = text.data() + text.size();
  double value = 0;
  const auto [rest, status] = std::from_chars(text.data(), last, value);
  const char lead = text.empty() ? ' ' : text[text.starts_with('-') && text.size() > 1 ? 1 : 0];
  const bool decimal = (lead >= '0' && lead <= '9') || lead == '.';
  if (node.quoted) return mismatch(node, type, key, "remove the quotes");
  if (status == std::errc::result_out_of_range)
    return Complaint{fmt::format("'{}' is out of range: {}", key, quoted(text)), {}};
  if (status == std::errc() && decimal && rest + 1 == last && *rest == '%')
    return mismatch(node, type, key, fmt::format("write the ratio: {}", value / 100));
  if (status != std::errc() || !decimal || rest != last)
    return mismatch(node, type, key, "write a finite decimal number, such as 0.85");
  type.set_real(object, value);
  return std::nullopt;
}

std::optional<Complaint> read_quantity(const Node& node, const Type& type, const std::string& key,
                                       void* object) {
  const auto read = parse_quantity(node.text, type.dimension);
  if (const auto* fault = std::get_if<QuantityFault>(&read))
    return Complaint{fmt::format("'{}': {}", key, fault->what), fault->help};
  type.set_real(object, std::get<double>(read));
  return std::nullopt;
}

std::optional<Complaint> read_enum(const Node& node, const Type& type, const std::string& key,
                                   void* object) {
  std::vector<std::string> words;
  for (const Name& name : *type.names()) {
    if (name.text == node.text) {
      type.set_integer(object, name.value);
      return std::nullopt;
    }
    words.push_back(name.text);
  }
  const auto near = nearest_name(node.text, words);
  return Complaint{fmt::format("'{}' cannot be {}", key, quoted(node.text)),
                   (near ? "did you mean '" + *near + "'? " : "") +
                       "legal: " + quoted_choice(words, words.size())};
}

}  // namespace

std::optional<Complaint> read_scalar(const Node& node, const Type& type, const std::string& key,
                                     void* object) {
  switch (type.kind) {
    case Kind::kBool:
      return read_bool(node, type, key, object);
    case Kind::kInteger:
      return read_integer(node, type, key, object);
    case Kind::kReal:
      return read_real(node, type, key, object);
    case Kind::kText:
      *static_cast<std::string*>(object) = node.text;
      return std::nullopt;
    case Kind::kQuantity:
      return read_quantity(node, type, key, object);
    case Kind::kEnum:
      return read_enum(node, type, key, object);
    default:
      FORESHARD_CHECK(false && "a scalar type");
      return std::nullopt;
  }
}

std::optional<Complaint> broken_constraint(const Type& type,
                                           const std::vector<Constraint>& constraints,
                                           const std::string& key, const void* object) {
  for (const Constraint& constraint : constraints) {
    bool holds = true;
    if (type.kind == Kind::kInteger || type.kind == Kind::kReal || type.kind == Kind::kQuantity) {
      const double value = type.kind == Kind::kInteger ? static_cast<double>(type.integer(object))
                                                       : type.real(object);
      holds = value >= constraint.lowest && value <= constraint.highest &&
              !(constraint.above_lowest && value == constraint.lowest);
    } else if (type.kind == Kind::kText) {
      const auto& text = *static_cast<const std::string*>(object);
      const auto& words = constraint.allowed;
      holds = (words.empty() || std::find(words.begin(), words.end(), text) != words.end()) &&
              !(constraint.non_empty && text.empty());
      const auto near = holds ? std::nullopt : nearest_name(text, words);
      if (near)
        return Complaint{
            fmt::format("'{}' must be {}, found {}", key, constraint.doc, quoted(text)),
            "did you mean '" + *near + "'?"};
    } else if (type.size != nullptr) {
      holds = !(constraint.non_empty && type.size(object) == 0);
    }
    if (holds) continue;
    const std::string found = is_scalar(type.kind) ? ", found " + scalar(type, object) : "";
    const std::string must =
        constraint.non_empty ? "must not be empty" : "must be " + constraint.doc + found;
    return Complaint{fmt::format("'{}' {}", key, must), {}};
  }
  return std::nullopt;
}

}  // namespace foreshard::yaml::internal
