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
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/checkpoint/element_type.h"

namespace foreshard::checkpoint {

inline constexpr std::int64_t kMostSafetensorsHeader = 100'000'000;

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
