#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <vector>

#include "base/text.h"
#include "base/yaml/describe.h"
#include "base/yaml/internal/wording.h"

namespace foreshard::yaml::internal {
namespace {

// Text inside a cell of a markdown table.
std::string cell(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

class Page {
 public:
  std::string write(const Type& root) {
    visit(root);
    for (std::size_t i = 0; i < sections_.size(); ++i) section(*sections_[i]);
    if (!dimensions_.empty()) units();
    return text_;
  }

 private:
  // Remembers the mappings and dimensions that a type leads to.
  void visit(const Type& type) {
    if (type.kind == Kind::kStruct) {
      const Fields& fields = type.fields();
      if (std::find(sections_.begin(), sections_.end(), &fields) == sections_.end())
        sections_.push_back(&fields);
    } else if (type.kind == Kind::kQuantity) {
      dimensions_.insert(type.dimension);
    } else if (type.element != nullptr) {
      visit(type.element());
    }
  }

  static std::string value(const Type& type) {
    switch (type.kind) {
      case Kind::kQuantity:
        return std::string(dimension_info(type.dimension).name);
      case Kind::kEnum: {
        std::vector<std::string> words;
        for (const Name& name : *type.names()) words.push_back(fmt::format("`{}`", name.text));
        return join(words);
      }
      case Kind::kOptional:
        return value(type.element());
      case Kind::kList:
        return "list of: " + value(type.element());
      case Kind::kMap:
        return "mapping from names to: " + value(type.element());
      case Kind::kStruct:
        return fmt::format("[{0}](#{0})", type.fields().name);
      case Kind::kSourced:
        return value(type.element()) + ", or `{value, source, evidence}`";
      case Kind::kRef: {
        const bool catalogue = !type.element().fields().folder.empty();
        return value(type.element()) + (catalogue ? ", a catalogue name or a path" : " or a path");
      }
      default:
        return expectation(type);
    }
  }

  static std::string default_of(const Field& field, const void* defaults) {
    if (field.required) return "**required**";
    const Type& type = field.type();
    const void* part = static_cast<const char*>(defaults) + field.offset;
    if (is_scalar(type.kind)) return fmt::format("`{}`", scalar(type, part));
    if (type.kind == Kind::kSourced && is_scalar(type.element().kind))
      return fmt::format("`{}`", scalar(type.element(), type.value(const_cast<void*>(part))));
    if (type.size != nullptr && type.size(part) == 0)
      return type.kind == Kind::kOptional ? "none" : "empty";
    return "its defaults";
  }

  void section(const Fields& fields) {
    text_ += fmt::format("## {}\n\n{}\n\n", fields.name, fields.doc);
    if (!fields.folder.empty()) text_ += fmt::format("Catalogue folder: `{}`.\n\n", fields.folder);
    text_ += "| key | value | default | meaning |\n|---|---|---|---|\n";
    std::string words;
    for (const Field& field : fields.fields) {
      const Type& type = field.type();
      visit(type);
      std::string allowed;
      for (const Constraint& c : field.constraints) allowed += ", " + c.doc;
      text_ += fmt::format("| `{}` | {} | {} | {} |\n", field.key, cell(value(type) + allowed),
                           cell(default_of(field, fields.defaults)), cell(field.doc));
      const Type& inner = plain(type);
      if (inner.kind != Kind::kEnum) continue;
      words += fmt::format("\n`{}`:\n\n", field.key);
      for (const Name& name : *inner.names())
        words += fmt::format("- `{}`: {}\n", name.text, name.doc);
    }
    text_ += words + "\n";
  }

  void units() {
    text_ += "## Units\n\n| quantity | units |\n|---|---|\n";
    for (const Dimension dimension : dimensions_)
      text_ += fmt::format("| {} | {} |\n", dimension_info(dimension).name, suffix_list(dimension));
  }

  std::vector<const Fields*> sections_;
  std::set<Dimension> dimensions_;
  std::string text_;
};

}  // namespace

std::string reference(const Type& type) {
  return Page().write(type);
}

}  // namespace foreshard::yaml::internal
