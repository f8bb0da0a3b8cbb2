/// \file
/// The safetensors file format: 8 bytes with the length N of a header (little-endian), N bytes of
/// JSON, the data.
///
///     {"__metadata__": {"format": "pt"},
///      "layers.0.qkv.weight": {"dtype": "BF16", "shape": [16, 8], "data_offsets": [0, 256]}}
///
/// Offsets count from the first byte after the header. Tensors are row-major and little-endian.
/// Source: https://huggingface.co/docs/safetensors, "Format".
///
/// These are checked, each with its own message: the length fits the file and the limit of 100 MB;
/// the header is one JSON object that starts with `{`, no key twice; every tensor has dtype, shape
/// and data_offsets and nothing else; the dtype is known; shape and offsets agree; the tensors
/// cover the data without overlap or hole.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/graph/layout.h"
#include "strategies/program/ir/kernel.h"

namespace foreshard::checkpoint {

/// Element types of tensors on disk, by the names that safetensors gives them. A conversion moves
/// elements and never computes with them, so there are more types here than a kernel knows.
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

struct StoredTensor {
  std::string name{};
  ElementType type = ElementType::kBf16;
  Shape shape{};
  std::int64_t offset = 0;  ///< Bytes from the beginning of the data.
  bool operator==(const StoredTensor&) const = default;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors{};  ///< Sorted by offset, then name.
  std::map<std::string, std::string> metadata{};
  bool operator==(const SafetensorsHeader&) const = default;
};

/// The length N in the first 8 bytes of a file of `file_bytes`.
/// \return kInvalidInput as above. `first` may be shorter than 8 bytes if the file is.
Result<std::int64_t> safetensors_header_length(std::string_view first, std::int64_t file_bytes);

/// Reads the N bytes of a header before `data_bytes` bytes of data.
/// \return kInvalidInput as above.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, std::int64_t data_bytes);

/// The length and the header of a file with these tensors in this order, one after the other
/// (their offsets are ignored), padded with spaces to a multiple of 8 bytes. Equal input gives
/// equal bytes.
std::string safetensors_header(const std::vector<StoredTensor>& tensors,
                               const std::map<std::string, std::string>& metadata);

}  // namespace foreshard::checkpoint
