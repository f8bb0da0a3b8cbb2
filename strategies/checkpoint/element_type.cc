#include "strategies/checkpoint/element_type.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace foreshard::checkpoint {
namespace {

struct Line {
  ElementType type;
  std::string_view name;
  std::int64_t size;
};

constexpr std::array<Line, 15> kTypes{{
    {ElementType::kBool, "BOOL", 1},
    {ElementType::kU8, "U8", 1},
    {ElementType::kI8, "I8", 1},
    {ElementType::kF8E5M2, "F8_E5M2", 1},
    {ElementType::kF8E4M3, "F8_E4M3", 1},
    {ElementType::kI16, "I16", 2},
    {ElementType::kU16, "U16", 2},
    {ElementType::kF16, "F16", 2},
    {ElementType::kBf16, "BF16", 2},
    {ElementType::kI32, "I32", 4},
    {ElementType::kU32, "U32", 4},
    {ElementType::kF32, "F32", 4},
    {ElementType::kF64, "F64", 8},
    {ElementType::kI64, "I64", 8},
    {ElementType::kU64, "U64", 8},
}};

const Line& line_of(ElementType type) {
  const auto index = static_cast<std::size_t>(type);
  FORESHARD_CHECK(index < kTypes.size() && kTypes[index].type == type);
  return kTypes[index];
}

}  // namespace

std::string_view name_of(ElementType type) {
  return line_of(type).name;
}

std::optional<ElementType> element_type_named(std::string_view name) {
  const auto* const it = std::ranges::find(kTypes, name, &Line::name);
  if (it == kTypes.end()) return std::nullopt;
  return it->type;
}

std::vector<std::string> element_type_names() {
  std::vector<std::string> names;
  names.reserve(kTypes.size());
  for (const Line& line : kTypes) names.emplace_back(line.name);
  return names;
}

std::int64_t size_of(ElementType type) {
  return line_of(type).size;
}

ElementType stored_as(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kTf32:
      return ElementType::kF32;
    case DType::kFp16:
      return ElementType::kF16;
    case DType::kBf16:
      return ElementType::kBf16;
    case DType::kFp8:
      return ElementType::kF8E4M3;
    case DType::kFp4:  // no tensor is stored in it
      break;
    case DType::kInt8:
      return ElementType::kI8;
    case DType::kInt32:
      return ElementType::kI32;
    case DType::kInt64:
      return ElementType::kI64;
  }
  FORESHARD_CHECK(false);
}

std::optional<std::int64_t> bytes_of(ElementType type, const Shape& shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; }))
    return std::nullopt;
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::int64_t bytes = size_of(type);
  for (const std::int64_t extent : shape) {
    if (bytes > kMost / extent) return std::nullopt;
    bytes *= extent;
  }
  return bytes;
}

}  // namespace foreshard::checkpoint
