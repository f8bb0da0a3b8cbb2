#include <fmt/format.h>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/yaml/describe.h"
#include "base/yaml/internal/wording.h"

namespace foreshard::yaml::internal {
namespace {

// A value in YAML: on the line of its key (`flow`), or as lines of its own below it.
struct Text {
  std::string flow;
  std::vector<std::string> lines{};
  std::string comment{};
};

// Whether references show their names, in comments.
enum class Names : std::uint8_t { kShown, kLeftOut };

Text text_of(const Type& type, const void* object, Names names);

// The accessors of Type serve the reader, so they take a mutable object; nothing is written here.
void* mutable_object(const void* object) {
  return const_cast<void*>(object);
}

void put(std::vector<std::string>& lines, const std::string& key, const Text& text) {
  const std::string comment = text.comment.empty() ? "" : "  # " + text.comment;
  if (text.lines.empty()) {
    lines.push_back(fmt::format("{}: {}{}", key, text.flow, comment));
    return;
  }
  lines.push_back(fmt::format("{}:{}", key, comment));
  for (const std::string& line : text.lines) lines.push_back("  " + line);
}

bool is_number(const std::string& word) {
  const bool digits =
      word.find_first_not_of("0123456789", word.starts_with('-') ? 1 : 0) == std::string::npos;
  return digits && word.find_first_of("0123456789") != std::string::npos;
}

Text text_of_list(const Type& type, const void* object, Names names) {
  const bool flow = is_scalar(type.element().kind);
  Text list{.flow = "["};
  type.each(object, [&](const std::string&, const void* element) {
    const Text item = text_of(type.element(), element, names);
    if (flow) list.flow += (list.flow == "[" ? "" : ", ") + item.flow;
    if (flow) return;
    if (item.lines.empty()) list.lines.push_back("- " + item.flow);
    for (std::size_t i = 0; i < item.lines.size(); ++i)
      list.lines.push_back((i == 0 ? "- " : "  ") + item.lines[i]);
  });
  list.flow += "]";
  return list;
}

Text text_of_struct(const Type& type, const void* object, Names names) {
  Text mapping{.flow = "{}"};
  for (const Field& field : type.fields().fields) {
    const Type& member = field.type();
    const void* part = static_cast<const char*>(object) + field.offset;
    if (member.kind == Kind::kOptional && member.size(part) == 0) continue;
    put(mapping.lines, field.key, text_of(member, part, names));
  }
  return mapping;
}

Text text_of_sourced(const Type& type, const void* object, Names names) {
  Text value = text_of(type.element(), type.value(mutable_object(object)), names);
  const std::string& source = *type.text(mutable_object(object));
  const Evidence evidence = *type.evidence(mutable_object(object));
  if (source.empty() && evidence == Evidence::kUser) return value;
  const std::string from = scalar(source);
  const std::string sure(name_of(evidence));
  if (value.lines.empty())
    return {.flow = fmt::format("{{value: {}, source: {}, evidence: {}}}", value.flow, from, sure)};
  Text mapping;
  put(mapping.lines, "value", value);
  mapping.lines.push_back("source: " + from);
  mapping.lines.push_back("evidence: " + sure);
  return mapping;
}

Text text_of(const Type& type, const void* object, Names names) {
  switch (type.kind) {
    case Kind::kOptional: {
      Text value{.flow = "null"};
      type.each(object, [&](const std::string&, const void* element) {
        value = text_of(type.element(), element, names);
      });
      return value;
    }
    case Kind::kList:
      return text_of_list(type, object, names);
    case Kind::kMap: {
      Text mapping{.flow = "{}"};
      type.each(object, [&](const std::string& key, const void* element) {
        put(mapping.lines, scalar(key), text_of(type.element(), element, names));
      });
      return mapping;
    }
    case Kind::kStruct:
      return text_of_struct(type, object, names);
    case Kind::kSourced:
      return text_of_sourced(type, object, names);
    case Kind::kRef: {
      Text value = text_of(type.element(), type.value(mutable_object(object)), names);
      const std::string& name = *type.text(mutable_object(object));
      if (!name.empty() && names == Names::kShown) value.comment = scalar(name);
      return value;
    }
    case Kind::kWords: {
      const auto& words = *static_cast<const Words*>(object);
      std::string flow;
      for (const std::string& word : words.words)
        flow += (flow.empty() ? "" : ", ") + (is_number(word) ? word : scalar(word));
      return {.flow = words.list ? "[" + flow + "]" : flow};
    }
    case Kind::kWritten:
      return {.flow = static_cast<const Written*>(object)->text};
    default:
      return {.flow = scalar(type, object)};
  }
}

std::string whole(const Text& text) {
  if (text.lines.empty()) return text.flow + "\n";
  std::string result;
  for (const std::string& line : text.lines) {
    result += line;
    result += '\n';
  }
  return result;
}

bool is_same(const Type& type, const void* a, const void* b) {
  return whole(text_of(type, a, Names::kLeftOut)) == whole(text_of(type, b, Names::kLeftOut));
}

}  // namespace

std::string echo(const Type& type, const void* object) {
  return whole(text_of(type, object, Names::kShown));
}

namespace {

// Writes what differs from another object of the same type: the defaults, or what a name of the
// catalogue stands for.
class Brief {
 public:
  using Find = std::function<Result<std::shared_ptr<void>>(const Type&, const std::string&)>;

  // `extends`: whether changed objects of the catalogue are written as what extends them.
  Brief(Find find, bool extends) : find_(std::move(find)), extends_(extends) {}

  // `required`: also the required keys that do not differ, as a mapping needs them that extends
  // nothing.
  Result<Text> changes(const Type& type, const void* object, const void* from, bool required) {
    Text mapping{.flow = "{}"};
    for (const Field& field : type.fields().fields) {
      const Type& member = field.type();
      const void* part = static_cast<const char*>(object) + field.offset;
      const void* other = static_cast<const char*>(from) + field.offset;
      if (!(required && field.required) && is_same(member, part, other)) continue;
      FORESHARD_ASSIGN(auto text, value(member, part, other));
      put(mapping.lines, field.key, text);
    }
    return mapping;
  }

 private:
  Result<Text> value(const Type& type, const void* object, const void* from) {
    if (type.kind == Kind::kStruct) return changes(type, object, from, from_defaults(type, from));
    if (type.kind == Kind::kRef) return reference(type, object);
    if (type.kind != Kind::kOptional || type.size(object) == 0)
      return text_of(type, object, Names::kLeftOut);
    const void* inner = element(type, object);
    const Type& held = type.element();
    if (held.kind != Kind::kStruct) return value(held, inner, nullptr);
    if (const void* before = element(type, from)) return changes(held, inner, before, false);
    return changes(held, inner, held.fields().defaults, true);
  }

  // Whether nothing but the constructor of an object has set its members so far.
  static bool from_defaults(const Type& type, const void* from) {
    return is_same(type, from, type.fields().defaults);
  }

  static const void* element(const Type& type, const void* object) {
    const void* found = nullptr;
    type.each(object, [&](const std::string&, const void* inner) { found = inner; });
    return found;
  }

  Result<Text> reference(const Type& type, const void* object) {
    const Type& held = type.element();
    const void* inner = type.value(mutable_object(object));
    const std::string& name = *type.text(mutable_object(object));
    if (name.empty()) return changes(held, inner, held.fields().defaults, true);
    FORESHARD_ASSIGN(const auto named, find_(held, name));
    if (is_same(held, inner, named.get())) return Text{.flow = scalar(name)};
    if (!extends_) return changes(held, inner, held.fields().defaults, true);
    Text mapping{.flow = "", .lines = {"extends: " + scalar(name)}};
    FORESHARD_ASSIGN(auto over, changes(held, inner, named.get(), false));
    mapping.lines.insert(mapping.lines.end(), over.lines.begin(), over.lines.end());
    return mapping;
  }

  Find find_;
  bool extends_;
};

}  // namespace

Result<std::string> brief(const Type& type, const void* object, Loader& loader) {
  constexpr std::string_view kAt = "brief";  // no override begins with it
  const auto find = [&](const Type& held,
                        const std::string& name) -> Result<std::shared_ptr<void>> {
    auto named = held.fresh();
    FORESHARD_TRY(loader.read_ref(name, kAt, held, named.get()));
    return named;
  };
  const auto written = [&](bool extends) -> Result<std::string> {
    Brief writer(find, extends);
    FORESHARD_ASSIGN(const auto text, writer.changes(type, object, type.fields().defaults, true));
    return whole(text);
  };
  FORESHARD_ASSIGN(auto lines, written(true));
  const auto read = type.fresh();
  FORESHARD_TRY(loader.read_text(lines, kAt, kAt, type, read.get()));
  return is_same(type, object, read.get()) ? std::move(lines) : written(false);
}

}  // namespace foreshard::yaml::internal
