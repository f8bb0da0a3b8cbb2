#include <fmt/format.h>
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

Text text_of(const Type& type, const void* object);

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

Text text_of_list(const Type& type, const void* object) {
  const bool flow = is_scalar(type.element().kind);
  Text list{.flow = "["};
  type.each(object, [&](const std::string&, const void* element) {
    const Text item = text_of(type.element(), element);
    if (flow) list.flow += (list.flow == "[" ? "" : ", ") + item.flow;
    if (flow) return;
    if (item.lines.empty()) list.lines.push_back("- " + item.flow);
    for (std::size_t i = 0; i < item.lines.size(); ++i)
      list.lines.push_back((i == 0 ? "- " : "  ") + item.lines[i]);
  });
  list.flow += "]";
  return list;
}

Text text_of_struct(const Type& type, const void* object) {
  Text mapping{.flow = "{}"};
  for (const Field& field : type.fields().fields) {
    const Type& member = field.type();
    const void* part = static_cast<const char*>(object) + field.offset;
    if (member.kind == Kind::kOptional && member.size(part) == 0) continue;
    put(mapping.lines, field.key, text_of(member, part));
  }
  return mapping;
}

Text text_of_sourced(const Type& type, const void* object) {
  Text value = text_of(type.element(), type.value(mutable_object(object)));
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

Text text_of(const Type& type, const void* object) {
  switch (type.kind) {
    case Kind::kOptional: {
      Text value{.flow = "null"};
      type.each(object, [&](const std::string&, const void* element) {
        value = text_of(type.element(), element);
      });
      return value;
    }
    case Kind::kList:
      return text_of_list(type, object);
    case Kind::kMap: {
      Text mapping{.flow = "{}"};
      type.each(object, [&](const std::string& key, const void* element) {
        put(mapping.lines, scalar(key), text_of(type.element(), element));
      });
      return mapping;
    }
    case Kind::kStruct:
      return text_of_struct(type, object);
    case Kind::kSourced:
      return text_of_sourced(type, object);
    case Kind::kRef: {
      Text value = text_of(type.element(), type.value(mutable_object(object)));
      const std::string& name = *type.text(mutable_object(object));
      if (!name.empty()) value.comment = scalar(name);
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

}  // namespace

std::string echo(const Type& type, const void* object) {
  const Text text = text_of(type, object);
  if (text.lines.empty()) return text.flow + "\n";
  std::string result;
  for (const std::string& line : text.lines) {
    result += line;
    result += '\n';
  }
  return result;
}

}  // namespace foreshard::yaml::internal
