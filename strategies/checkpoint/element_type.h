/// \file
/// Element types of tensors on disk, by the names that safetensors gives them. A conversion moves
/// elements and never computes with them, so there are more types here than a kernel knows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/graph/layout.h"
#include "strategies/program/ir/kernel.h"

namespace foreshard::checkpoint {

enum class ElementType : std::uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kI16,
  kU16,
  kF16,
  kBf16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64,
};

/// "BF16".
std::string_view name_of(ElementType type);
/// \return nothing for types that are not in the table, such as types of less than a byte.
std::optional<ElementType> element_type_named(std::string_view name);
std::vector<std::string> element_type_names();
/// Bytes of one element.
std::int64_t size_of(ElementType type);
/// The type in which a tensor of `dtype` is stored (tf32 as fp32, fp8 as E4M3).
ElementType stored_as(DType dtype);

/// Bytes of a tensor, or nothing if an extent is negative or the product exceeds 2^62.
std::optional<std::int64_t> bytes_of(ElementType type, const Shape& shape);

}  // namespace foreshard::checkpoint
