#include "tests/strategies/checkpoint/synthetic.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <map>

#include "base/check.h"
#include "base/digest/sha256.h"
#include "base/file.h"
#include "base/hash.h"

#include "strategies/checkpoint/convert.h"
#include "strategies/checkpoint/internal/gather.h"
#include "strategies/checkpoint/safetensors.h"

namespace foreshard::checkpoint {
namespace {

constexpr std::int64_t kBlock = 1 << 20;

std::uint64_t number_of(const std::string& name, std::uint64_t seed) {
  const std::string digest = sha256(name);
  std::uint64_t number = 0;
  std::from_chars(digest.data(), digest.data() + 16, number, 16);
  return finalised(seed + number);
}

// Elements of `part` of a tensor, row-major.
void generate(const TensorEntry& tensor, std::uint64_t number, const Box& part,
              std::span<char> to) {
  const auto size = static_cast<std::size_t>(size_of(tensor.type));
  const Shape& logical = tensor.logical();
  const std::size_t n = tensor.shape.size();
  Shape index = part.begin;
  for (std::size_t at = 0; at < to.size();) {
    std::int64_t linear = 0;
    bool padding = false;
    for (std::size_t d = 0; d < n; ++d) {
      linear = linear * tensor.shape[d] + index[d];
      padding = padding || index[d] >= logical[d];
    }
    // Along the last dimension indices follow each other.
    const std::int64_t run = n == 0 ? 1 : part.end[n - 1] - part.begin[n - 1];
    for (std::int64_t i = 0; i < run; ++i, at += size) {
      const bool pad = padding || (n > 0 && part.begin[n - 1] + i >= logical[n - 1]);
      const std::uint64_t value =
          pad ? 0 : finalised(number + static_cast<std::uint64_t>(linear + i));
      std::memcpy(to.data() + at, &value, size);
    }
    std::size_t d = n == 0 ? 0 : n - 1;
    for (; d > 0; --d) {
      if (++index[d - 1] < part.end[d - 1]) break;
      index[d - 1] = part.begin[d - 1];
    }
    if (d == 0) break;
  }
}

}  // namespace

Status write_synthetic(const std::filesystem::path& directory, FileFormat format,
                       const std::vector<TensorEntry>& tensors, std::uint64_t seed) {
  std::map<std::int32_t, std::vector<std::pair<const TensorEntry*, Box>>> of_rank;
  for (const TensorEntry& tensor : tensors) {
    if (const auto why = fault_in(tensor))
      return Error{Error::Code::kInvalidInput, "tensor '" + tensor.name + "': " + *why};
    for (std::int64_t p = 0; p < tensor.layout.mesh.size(); ++p)
      of_rank[tensor.layout.mesh.ranks[static_cast<std::size_t>(p)]].emplace_back(
          &tensor, slice_of(tensor.layout, tensor.shape, p));
  }
  std::error_code failed;
  if (!std::filesystem::create_directory(directory, failed))
    return Error{Error::Code::kIo, directory.string() + ": cannot create: " +
                                       (failed ? failed.message() : "it exists already")};
  Manifest manifest{.format = format, .origin = "synthetic", .tensors = tensors};
  std::vector<char> block(kBlock);
  for (auto& [rank, slices] : of_rank) {
    if (format == FileFormat::kSafetensors)
      std::ranges::stable_sort(slices, std::greater<>{},
                               [](const auto& slice) { return size_of(slice.first->type); });
    ShardFile file{.rank = rank, .path = shard_name(rank, format)};
    FORESHARD_ASSIGN(OutputFile output, OutputFile::create(directory / file.path));
    if (format == FileFormat::kSafetensors) {
      std::vector<StoredTensor> stored;
      for (const auto& [tensor, box] : slices) {
        stored.push_back({.name = tensor->name, .type = tensor->type});
        for (std::size_t d = 0; d < box.begin.size(); ++d)
          stored.back().shape.push_back(box.end[d] - box.begin[d]);
      }
      FORESHARD_TRY(output.append(safetensors_header(stored, {})));
    }
    Status error;
    for (const auto& slice : slices) {
      const TensorEntry& tensor = *slice.first;
      if (slice.second.elements() == 0) continue;
      const std::uint64_t number = number_of(tensor.name, seed);
      internal::for_each_part(slice.second, size_of(tensor.type), kBlock, [&](const Box& part) {
        if (!error.ok()) return;
        const auto bytes = static_cast<std::size_t>(part.elements() * size_of(tensor.type));
        generate(tensor, number, part, std::span(block).first(bytes));
        error = output.append({block.data(), bytes});
      });
      if (!error.ok()) return error;
    }
    file.bytes = output.bytes();
    FORESHARD_ASSIGN(file.sha256, output.finish());
    manifest.files.push_back(std::move(file));
  }
  return write_file(directory / kManifestName, to_json(manifest));
}

Status check_synthetic(const Source& source, std::uint64_t seed) {
  std::vector<char> wanted(kBlock);
  std::vector<char> found(kBlock);
  std::vector<std::filesystem::path> paths;
  paths.reserve(source.files.size());
  for (const SourceFile& file : source.files) paths.push_back(file.path);
  OpenFiles files(paths);
  for (const SourceTensor& tensor : source.tensors) {
    const TensorEntry& entry = tensor.entry;
    const std::uint64_t number = number_of(entry.name, seed);
    for (std::size_t p = 0; p < tensor.locations.size(); ++p) {
      Location at = tensor.locations[p];
      const Box box = slice_of(entry.layout, entry.shape, static_cast<std::int64_t>(p));
      if (at.file < 0 || box.elements() == 0) continue;
      FORESHARD_ASSIGN(const auto file, files.at(at.file));
      Status error;
      internal::for_each_part(box, size_of(entry.type), kBlock, [&](const Box& part) {
        if (!error.ok()) return;
        const auto bytes = static_cast<std::size_t>(part.elements() * size_of(entry.type));
        const auto piece = std::span(found).first(bytes);
        error = file->read(at.offset, piece);
        if (!error.ok()) return;
        generate(entry, number, part, std::span(wanted).first(bytes));
        const auto differs = std::mismatch(piece.begin(), piece.end(), wanted.begin()).first;
        if (differs != piece.end())
          error = Error{Error::Code::kInvalidInput,
                        fmt::format("{}: byte {} of tensor '{}' is wrong",
                                    paths[static_cast<std::size_t>(at.file)].string(),
                                    at.offset + (differs - piece.begin()), entry.name)};
        at.offset += static_cast<std::int64_t>(bytes);
      });
      if (!error.ok()) return error;
    }
  }
  return {};
}

}  // namespace foreshard::checkpoint
