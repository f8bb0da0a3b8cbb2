#include "base/yaml/internal/reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/quantity.h"
#include "base/text.h"
#include "base/yaml/internal/node.h"
#include "base/yaml/internal/parse.h"
#include "base/yaml/internal/wording.h"
#include "base/yaml/quoted.h"
#include "base/yaml/type.h"

namespace foreshard::yaml::internal {
namespace {

// Texts of scalars to values, strictly.

struct Complaint {
  std::string message;
  std::string help;
};

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

// Puts the scalar `node` into `object`. `key` is what messages call the value.
// \pre `type` is scalar and `node` is a scalar.
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

// A complaint if `object` breaks one of `constraints`.
// \pre `type` is a scalar, a list or a map.
std::optional<Complaint> broken_constraint(const Type& type,
                                           const std::vector<Constraint>& constraints,
                                           const std::string& key, const void* object) {
  for (const Constraint& constraint : constraints) {
    bool fits = true;
    if (type.kind == Kind::kInteger || type.kind == Kind::kReal || type.kind == Kind::kQuantity) {
      const double value = type.kind == Kind::kInteger ? static_cast<double>(type.integer(object))
                                                       : type.real(object);
      fits = holds(constraint, value);
    } else if (type.kind == Kind::kText) {
      const auto& text = *static_cast<const std::string*>(object);
      const auto& words = constraint.allowed;
      fits = (words.empty() || std::find(words.begin(), words.end(), text) != words.end()) &&
             !(constraint.non_empty && text.empty());
      const auto near = fits ? std::nullopt : nearest_name(text, words);
      if (near)
        return Complaint{
            fmt::format("'{}' must be {}, found {}", key, constraint.doc, quoted(text)),
            "did you mean '" + *near + "'?"};
    } else if (type.size != nullptr) {
      fits = !(constraint.non_empty && type.size(object) == 0);
    }
    if (fits) continue;
    const std::string found = is_scalar(type.kind) ? ", found " + scalar(type, object) : "";
    const std::string must =
        constraint.non_empty ? "must not be empty" : "must be " + constraint.doc + found;
    return Complaint{fmt::format("'{}' {}", key, must), {}};
  }
  return std::nullopt;
}

constexpr std::string_view kExtends = "extends";

std::string below(const std::string& path, std::string_view part) {
  return path.empty() ? std::string(part) : path + "." + std::string(part);
}

bool is_below(std::string_view path, std::string_view above) {
  return above.empty() ||
         (path.size() > above.size() + 1 && path.starts_with(above) && path[above.size()] == '.');
}

std::string shape_of(const Node& node) {
  switch (node.shape) {
    case Node::Shape::kNull:
      return "nothing";
    case Node::Shape::kScalar:
      return "the text '" + (node.text.size() > 40 ? node.text.substr(0, 40) + "..." : node.text) +
             "'";
    case Node::Shape::kList:
      return "a list";
    case Node::Shape::kMapping:
      return "a mapping";
  }
  return {};
}

std::vector<std::string> keys_of(const Fields& fields) {
  std::vector<std::string> keys;
  for (const Field& field : fields.fields) keys.push_back(field.key);
  return keys;
}

// The item of a list whose index is `name`, if there is one.
Node* item(Node& list, std::string_view name) {
  std::size_t index = 0;
  const auto [rest, status] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (status != std::errc() || rest != name.data() + name.size()) return nullptr;
  return index < list.items.size() ? &list.items[index] : nullptr;
}

// A plain scalar means the same in a flow collection unless it holds what ends or begins a value.
// Control characters are escaped, for a terminal would obey them.
std::string flow_scalar(const std::string& text, bool quoted) {
  const bool special = std::ranges::any_of(text, [](char c) {
    constexpr char kDelete = 0x7f;
    return (c >= 0 && c < ' ') || c == kDelete ||
           std::string_view(",[]{}:#").find(c) != std::string_view::npos;
  });
  return quoted || special ? yaml::quoted(text) : text;
}

// The node on one line.
std::string flow_text(const Node& node) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  switch (node.shape) {
    case Node::Shape::kNull:
      return "null";
    case Node::Shape::kScalar:
      return flow_scalar(node.text, node.quoted);
    case Node::Shape::kList:
      for (const Node& each : node.items) add(flow_text(each));
      return "[" + text + "]";
    case Node::Shape::kMapping:
      for (const Entry& entry : node.entries)
        add(scalar(entry.key) + ": " + flow_text(entry.value));
      return "{" + text + "}";
  }
  return text;
}

}  // namespace

std::string with_dots(std::string_view path) {
  std::string result;
  for (const char c : path) {
    if (c == '[')
      result += '.';
    else if (c != ']')
      result += c;
  }
  return result;
}

Reader::Reader(Memory& memory) : memory_(memory) {
  for (const Override& wish : memory.options.overrides) {
    const int source = memory.sources.add({.name = "--set " + wish.path + "=" + wish.value,
                                           .file = {},
                                           .text = wish.value,
                                           .is_override = true});
    targets_.push_back(
        {.path = with_dots(wish.path),
         .mark = {.source = source},
         .value = parse(memory.sources, source, memory.options.most_values, faults_)});
  }
}

Status Reader::error(const std::string& at) {
  if (!io_fault_.ok()) return io_fault_;
  if (faults_.empty())
    for (const Target& target : targets_)
      if (!target.used && is_below(target.path, at))
        faults_.add(target.mark, "there is no '" + target.path + "' to set");
  if (faults_.empty()) return {};
  return faults_.error(memory_.sources, memory_.options.most_errors, memory_.options.width);
}

void Reader::read(Node node, const Type& type, const Constraints& constraints, const Where& where,
                  void* object) {
  if (++values_ > memory_.options.most_values) {
    if (values_ == memory_.options.most_values + 1)
      faults_.add(node.mark, fmt::format("more than {} values, references expanded",
                                         memory_.options.most_values));
    return;
  }
  memory_.places[where.path] = node.mark;
  if (type.kind == Kind::kOptional)
    return read_optional(std::move(node), type, constraints, where, object);
  if (node.shape == Node::Shape::kNull)
    return faults_.add(node.mark, "'" + where.key + "' has no value",
                       "expected " + expectation(type));
  switch (type.kind) {
    case Kind::kList:
      return read_list(std::move(node), type, constraints, where, object);
    case Kind::kMap:
      return read_map(std::move(node), type, constraints, where, object);
    case Kind::kStruct:
      return read_struct(std::move(node), type, where, object);
    case Kind::kSourced:
      return read_sourced(std::move(node), type, constraints, where, object);
    case Kind::kRef:
      return read_ref(std::move(node), type, constraints, where, object);
    case Kind::kWords:
      return read_words(node, type, where, object);
    case Kind::kWritten:
      static_cast<Written*>(object)->text = flow_text(node);
      return;
    default:
      break;
  }
  if (node.shape != Node::Shape::kScalar) return mismatch(node, type, where);
  auto complaint = read_scalar(node, type, where.key, object);
  if (!complaint) complaint = broken_constraint(type, constraints, where.key, object);
  if (complaint) faults_.add(node.mark, complaint->message, complaint->help);
}

void Reader::read_optional(Node node, const Type& type, const Constraints& constraints,
                           const Where& where, void* object) {
  type.clear(object);
  if (node.shape == Node::Shape::kNull) return;
  read(std::move(node), type.element(), constraints, where, type.add(object, {}));
}

void Reader::read_list(Node node, const Type& type, const Constraints& constraints,
                       const Where& where, void* object) {
  if (node.shape != Node::Shape::kList)
    return mismatch(
        node, type, where,
        node.shape == Node::Shape::kScalar ? "a list of one is written [" + node.text + "]" : "");
  apply_overrides(node, where.path);
  type.clear(object);
  for (std::size_t i = 0; i < node.items.size(); ++i)
    read(std::move(node.items[i]), type.element(), constraints,
         {below(where.path, std::to_string(i)), fmt::format("{}[{}]", where.key, i)},
         type.add(object, {}));
  if (const auto complaint = broken_constraint(type, constraints, where.key, object))
    faults_.add(node.mark, complaint->message, complaint->help);
}

void Reader::read_map(Node node, const Type& type, const Constraints& constraints,
                      const Where& where, void* object) {
  if (node.shape != Node::Shape::kMapping) return mismatch(node, type, where);
  apply_overrides(node, where.path);
  type.clear(object);
  for (Entry& entry : node.entries)
    read(std::move(entry.value), type.element(), constraints,
         {below(where.path, entry.key), where.key + "." + entry.key}, type.add(object, entry.key));
  if (const auto complaint = broken_constraint(type, constraints, where.key, object))
    faults_.add(node.mark, complaint->message, complaint->help);
}

void Reader::read_sourced(Node node, const Type& type, const Constraints& constraints,
                          const Where& where, void* object) {
  const Kind inner = type.element().kind;
  const bool may_be_mapping = inner == Kind::kStruct || inner == Kind::kMap || inner == Kind::kRef;
  const bool has_source =
      node.shape == Node::Shape::kMapping && (!may_be_mapping || node.find("value") != nullptr);
  type.text(object)->clear();
  *type.evidence(object) = Evidence::kUser;
  if (!has_source)
    return read(std::move(node), type.element(), constraints, where, type.value(object));

  apply_overrides(node, where.path);
  static const std::vector<std::string> sourced_keys{"value", "source", "evidence"};
  std::vector<std::string> missing = sourced_keys;
  for (Entry& entry : node.entries) {
    const auto known = std::find(missing.begin(), missing.end(), entry.key);
    const Where inside{below(where.path, entry.key), where.key + "." + entry.key};
    if (known == missing.end()) {
      const auto near = nearest_name(entry.key, sourced_keys);
      faults_.add(
          entry.key_mark, "unknown key '" + entry.key + "' in '" + where.key + "'",
          (near ? "did you mean '" + *near + "'? " : "") + "legal: " + quoted_choice(sourced_keys));
      continue;
    }
    missing.erase(known);
    if (entry.key == "value")
      read(std::move(entry.value), type.element(), constraints, {where.path, where.key},
           type.value(object));
    else if (entry.key == "source")
      read(std::move(entry.value), type_of<std::string>(), {non_empty()}, inside,
           type.text(object));
    else
      read(std::move(entry.value), type_of<Evidence>(), {}, inside, type.evidence(object));
  }
  if (!missing.empty())
    faults_.add(node.mark, "'" + where.key + "' lacks " + quoted_choice(missing),
                "write {value: ..., source: \"where it is from\", evidence: " +
                    expectation(type_of<Evidence>()).substr(7) + "}, or the value alone");
}

void Reader::read_ref(Node node, const Type& type, const Constraints& constraints,
                      const Where& where, void* object) {
  type.text(object)->clear();
  if (node.shape != Node::Shape::kScalar)
    return read(std::move(node), type.element(), constraints, where, type.value(object));
  const auto path = find(node.text, type.element().fields(), node.mark);
  if (!path || !enter(*path, node.mark)) return;
  faults_.enter(node.mark);
  *type.text(object) = node.text;
  if (auto root = document(*path, node.mark))
    read(*std::move(root), type.element(), constraints, {where.path, where.key, true},
         type.value(object));
  faults_.leave();
  leave();
}

void Reader::read_words(const Node& node, const Type& type, const Where& where, void* object) {
  auto& words = *static_cast<Words*>(object);
  words = {};
  words.list = node.shape == Node::Shape::kList;
  if (node.shape == Node::Shape::kMapping) return mismatch(node, type, where);
  if (!words.list) words.words.push_back(node.text);
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    memory_.places[below(where.path, std::to_string(i))] = node.items[i].mark;
    if (node.items[i].shape != Node::Shape::kScalar) return mismatch(node, type, where);
    words.words.push_back(node.items[i].text);
  }
}

namespace {

// The start of a mapping, for messages: its only key besides `extends`, if it has just one; else
// the mapping itself.
Mark own_mark(const Node& mapping) {
  const Entry* only = nullptr;
  for (const Entry& entry : mapping.entries) {
    if (entry.key == kExtends) continue;
    if (only != nullptr) return mapping.mark;
    only = &entry;
  }
  return only == nullptr ? mapping.mark : only->key_mark;
}

// Whether the message starts with a verb, whose subject is the key.
bool lacks_subject(std::string_view fault) {
  const std::string_view verb = fault.substr(0, fault.find(' '));
  return verb == "is" || verb == "must" || verb == "needs" || verb == "gives" || verb == "lists";
}

// Whether the key `schema` shows that the file is the JSON result of a command, which no command
// reads as YAML.
bool names_result(const Entry* schema) {
  return schema != nullptr && schema->value.text.starts_with("foreshard.");
}

}  // namespace

void Reader::read_struct(Node node, const Type& type, const Where& where, void* object) {
  const Fields& fields = type.fields();
  if (node.shape != Node::Shape::kMapping)
    return mismatch(node, type, where, "its keys: " + join(keys_of(fields)));
  const std::size_t faults_before = faults_.size();
  const Mark own = own_mark(node);
  if (const Entry* schema = node.find("schema"); where.top_of_file && names_result(schema))
    return faults_.add(schema->key_mark, "this is a result, not a " + fields.name,
                       "give the file that it was made from");
  if (where.top_of_file || !fields.folder.empty()) {
    auto whole = extended(std::move(node), fields);
    if (!whole) return;
    node = *std::move(whole);
  }
  apply_overrides(node, where.path);

  std::vector<const Field*> missing;
  for (const Field& field : fields.fields)
    if (field.required && node.find(field.key) == nullptr) missing.push_back(&field);
  for (Entry& entry : node.entries) {
    const auto field = std::find_if(fields.fields.begin(), fields.fields.end(),
                                    [&](const Field& f) { return f.key == entry.key; });
    if (field == fields.fields.end()) {
      unknown_key(entry, fields);
      continue;
    }
    read(std::move(entry.value), field->type(), field->constraints,
         {below(where.path, entry.key), entry.key}, static_cast<char*>(object) + field->offset);
  }
  if (!missing.empty()) missing_keys(node, fields, missing);

  if (faults_.size() != faults_before) return;
  for (const Check& check : fields.checks) {
    const std::string fault = check.fault(object);
    if (fault.empty()) continue;
    const auto place = memory_.places.find(below(where.path, check.key));
    const bool written = node.find(check.key) != nullptr && place != memory_.places.end();
    // A value inherited from another file was valid there: the keys written here are at fault.
    const bool inherited = written && place->second.source != own.source &&
                           !memory_.sources[place->second.source].is_override;
    faults_.add(!written    ? node.mark
                : inherited ? own
                            : place->second,
                lacks_subject(fault) ? fmt::format("'{}' {}", check.key, fault) : fault);
  }
}

void Reader::mismatch(const Node& node, const Type& type, const Where& where, std::string help) {
  faults_.add(
      node.mark,
      fmt::format("'{}' must be {}, found {}", where.key, expectation(type), shape_of(node)),
      std::move(help));
}

void Reader::unknown_key(const Entry& entry, const Fields& fields) {
  const std::vector<std::string> keys = keys_of(fields);
  std::string help = "legal: " + quoted_choice(keys, 40);
  if (const auto near = nearest_name(entry.key, keys)) help = "did you mean '" + *near + "'?";
  if (entry.key == kExtends)
    help = "`extends` stands at the top of a file or of an object of the catalogue";
  faults_.add(entry.key_mark, "unknown key '" + entry.key.substr(0, 60) + "' in " + fields.name,
              std::move(help));
}

void Reader::missing_keys(const Node& node, const Fields& fields,
                          const std::vector<const Field*>& missing) {
  std::vector<std::string> keys;
  std::string help = missing.size() == 1 ? "add it:" : "add them:";
  for (const Field* field : missing) {
    keys.push_back("'" + field->key + "'");
    help += fmt::format("\n{}: <{}>  # {}", field->key, expectation(field->type()), field->doc);
  }
  faults_.add(node.mark,
              fmt::format("{} lacks the required key{} {}", fields.name,
                          keys.size() == 1 ? "" : "s", join(keys)),
              std::move(help));
}

void Reader::apply_overrides(Node& node, const std::string& path) {
  for (Target& target : targets_) {
    if (!target.value || !is_below(target.path, path)) continue;
    const std::string rest = path.empty() ? target.path : target.path.substr(path.size() + 1);
    const std::string part = rest.substr(0, rest.find('.'));
    const bool here = part.size() == rest.size();
    Node* place = nullptr;
    if (node.shape == Node::Shape::kList) {
      place = item(node, part);
    } else {
      Entry* entry = node.find(part);
      if (entry == nullptr) {
        Node empty = bare(Node::Shape::kMapping, target.mark);
        node.entries.push_back({part, target.mark, std::move(empty)});
        entry = &node.entries.back();
      }
      place = &entry->value;
    }
    if (place == nullptr) continue;
    if (here) {
      *place = *target.value;
      target.used = true;
    } else if (place->shape == Node::Shape::kNull) {
      *place = bare(Node::Shape::kMapping, target.mark);
    }
  }
}

}  // namespace foreshard::yaml::internal
