/// \file
/// The manifest of a checkpoint directory, `foreshard-checkpoint.json`. The directory also has one
/// file of shards for each rank.
///
///     {"schema": "foreshard.checkpoint/1", "format": "safetensors",
///      "origin": "gpt3-175b, tensor 8 x pipeline 16 x data 8",
///      "files": [{"rank": 0, "path": "rank-00000.safetensors", "bytes": 4096, "sha256": "ab..."}],
///      "layouts": [{"mesh": [["tp", 2]], "ranks": [0, 1], "dims": [[], ["tp"]]}],
///      "tensors": [{"name": "layers.0.qkv.weight", "dtype": "BF16", "shape": [64, 192],
///                   "layout": 0}]}
///
/// A rank's file holds the rank's slice of every tensor whose layout has that rank, under the
/// tensor's name; slices with larger elements come first, so that all are aligned. With `format`
/// "raw", slices follow each other in the order of `tensors`, without a header. A layout may have
/// "sizes" (uneven slices) as in Attribute. A tensor may have "unpadded", its shape without the
/// rows or columns that only pad it (a vocabulary), which are zeros.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/checkpoint/safetensors.h"
#include "strategies/graph/layout.h"

namespace foreshard::checkpoint {

inline constexpr std::string_view kManifestName = "foreshard-checkpoint.json";

enum class FileFormat : std::uint8_t { kSafetensors, kRaw };
std::string_view name_of(FileFormat format);

struct ShardFile {
  std::int32_t rank = 0;
  std::string path{};  ///< A plain name inside the directory.
  std::int64_t bytes = 0;
  std::string sha256{};  ///< 64 hexadecimal digits.
  bool operator==(const ShardFile&) const = default;
};

struct TensorEntry {
  std::string name{};
  ElementType type = ElementType::kBf16;
  Shape shape{};
  Shape unpadded{};  ///< Shape without padding. Empty: `shape`.
  Layout layout{};   ///< Not partial.
  bool operator==(const TensorEntry&) const = default;

  const Shape& logical() const { return unpadded.empty() ? shape : unpadded; }
};

struct Manifest {
  FileFormat format = FileFormat::kSafetensors;
  std::string origin{};            ///< Description of what made it, for people.
  std::string conversion{};        ///< ConversionPlan::identity; empty: not made by a conversion.
  std::vector<ShardFile> files{};  ///< One per rank, ascending.
  std::vector<TensorEntry> tensors{};  ///< Names are distinct.
  bool operator==(const Manifest&) const = default;
};

/// The rule that a tensor entry breaks, in words; nothing if it breaks none. The rules: the whole
/// tensor has at most 2^62 bytes; `unpadded` has as many dimensions as `shape` and is not larger;
/// fault_in(layout, shape) is empty; the layout is not partial.
std::optional<std::string> fault_in(const TensorEntry& tensor);

/// \return kInvalidInput with the place in the document and the reason. A document is accepted if
///     it has only the keys above, no key twice, entries without fault, names of files without a
///     folder, and a file for every rank of every layout.
Result<Manifest> manifest_from_json(std::string_view text);

/// Equal manifests give equal bytes; manifest_from_json reads them back.
std::string to_json(const Manifest& manifest);

}  // namespace foreshard::checkpoint
