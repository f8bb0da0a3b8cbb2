/// \file
/// A checkpoint that can be read: its tensors, the layout of each, and for every position in the
/// layout's mesh the file and the byte at which the slice begins.
///
/// Two kinds of directories can be read: directories with a manifest (manifest.h), and unsharded
/// Hugging Face directories (`model.safetensors`, or several files and
/// `model.safetensors.index.json`). In a Hugging Face directory every tensor is whole in one file,
/// which is a layout on one rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/checkpoint/manifest.h"

namespace foreshard::checkpoint {

/// The place where a slice begins.
struct Location {
  std::int32_t file = -1;   ///< Index into Source::files; -1: its rank is lost.
  std::int64_t offset = 0;  ///< Bytes from the beginning of the file.
};

struct SourceFile {
  std::filesystem::path path{};
  std::int64_t bytes = 0;
  std::string sha256{};  ///< Empty: the checkpoint states none.
};

struct SourceTensor {
  TensorEntry entry{};
  std::vector<Location> locations{};  ///< One per position in the layout's mesh.
};

struct Source {
  std::filesystem::path directory{};
  std::string origin{};
  std::vector<SourceFile> files{};
  std::vector<SourceTensor> tensors{};
  std::string identity{};  ///< Digest of what is known about the contents without reading them.
};

/// Opens and checks a checkpoint: sizes of files, headers, and that each file has exactly the
/// slices that it should have, with their types and shapes. Contents are not read.
/// \param lost  ranks whose files are lost; the files need not exist.
/// \return kInvalidInput with the file and what is wrong with it (missing, truncated, garbage, a
///     tensor that it lacks or that the manifest lacks); kIo where the system refuses.
Result<Source> open_source(const std::filesystem::path& directory,
                           const std::vector<std::int32_t>& lost = {});

}  // namespace foreshard::checkpoint
