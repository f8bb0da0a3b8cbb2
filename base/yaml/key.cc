#include "base/yaml/key.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace foreshard::yaml::internal {
namespace {

using Numbers = std::vector<std::int64_t>;

// The length, and eight characters a number.
void append_text(std::string_view text, Numbers& numbers) {
  numbers.push_back(static_cast<std::int64_t>(text.size()));
  for (std::size_t i = 0; i < text.size(); i += sizeof(std::int64_t)) {
    std::int64_t packed = 0;
    std::memcpy(&packed, text.data() + i, std::min(sizeof packed, text.size() - i));
    numbers.push_back(packed);
  }
}

void append_elements(const Type& type, const void* object, Numbers& numbers) {
  numbers.push_back(static_cast<std::int64_t>(type.size(object)));
  type.each(object, [&](const std::string& key, const void* element) {
    if (type.kind == Kind::kMap) append_text(key, numbers);
    append_key(type.element(), element, numbers);
  });
}

}  // namespace

std::vector<const Field*> fields_without(const Fields& fields,
                                         std::span<const std::string_view> without) {
  std::vector<const Field*> rest;
  for (const Field& field : fields.fields)
    if (std::ranges::find(without, field.key) == without.end()) rest.push_back(&field);
  FORESHARD_CHECK(rest.size() + without.size() == fields.fields.size());
  return rest;
}

void append_key(const Type& type, const void* object, Numbers& numbers) {
  void* const mutable_object = const_cast<void*>(object);  // for accessors that serve the reader
  switch (type.kind) {
    case Kind::kBool:
      numbers.push_back(*static_cast<const bool*>(object) ? 1 : 0);
      return;
    case Kind::kInteger:
    case Kind::kEnum:
      numbers.push_back(type.integer(object));
      return;
    case Kind::kReal:
    case Kind::kQuantity:
      numbers.push_back(std::bit_cast<std::int64_t>(type.real(object)));
      return;
    case Kind::kText:
      append_text(*static_cast<const std::string*>(object), numbers);
      return;
    case Kind::kOptional:
    case Kind::kList:
    case Kind::kMap:
      append_elements(type, object, numbers);
      return;
    case Kind::kStruct:
      for (const Field& field : type.fields().fields)
        append_key(field.type(), static_cast<const char*>(object) + field.offset, numbers);
      return;
    case Kind::kRef:
    case Kind::kSourced:  // where a number comes from makes no difference to what follows from it
      append_key(type.element(), type.value(mutable_object), numbers);
      return;
    case Kind::kWords: {
      const auto& words = static_cast<const Words*>(object)->words;
      numbers.push_back(static_cast<std::int64_t>(words.size()));
      for (const std::string& word : words) append_text(word, numbers);
      return;
    }
    case Kind::kWritten:
      append_text(static_cast<const Written*>(object)->text, numbers);
      return;
  }
  FORESHARD_CHECK(false && "every kind has a key");
}

}  // namespace foreshard::yaml::internal
