#include "strategies/checkpoint/source.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "base/digest/sha256.h"
#include "base/file.h"
#include "base/limits.h"

#include "strategies/checkpoint/files.h"
#include "strategies/checkpoint/hugging_face.h"
#include "strategies/checkpoint/safetensors.h"
#include "strategies/program/ir/json_node.h"

namespace foreshard::checkpoint {
namespace {

constexpr std::string_view kSingleName = "model.safetensors";

struct Header {
  SafetensorsHeader content;
  std::string text;  ///< Text as in the file.
  std::int64_t data_begin = 0;
};

Result<Header> header_of(const std::filesystem::path& path, const InputFile& file) {
  constexpr std::int64_t kPrefix = 8;
  std::string first(static_cast<std::size_t>(std::min(kPrefix, file.bytes())), '\0');
  FORESHARD_TRY(file.read(0, first));
  const auto length = safetensors_header_length(first, file.bytes());
  if (!length) return fault(path, length.error().message);
  Header header{.content = {},
                .text = std::string(static_cast<std::size_t>(*length), '\0'),
                .data_begin = kPrefix + *length};
  FORESHARD_TRY(file.read(kPrefix, header.text));
  auto content = parse_safetensors_header(header.text, file.bytes() - header.data_begin);
  if (!content) return fault(path, content.error().message);
  header.content = *std::move(content);
  return header;
}

Shape extents_of(const Box& box) {
  Shape shape(box.begin.size());
  for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = box.end[d] - box.begin[d];
  return shape;
}

// A slice that a rank's file should have.
struct Expected {
  std::size_t tensor = 0;
  std::size_t position = 0;
};

// --- with a manifest -------------------------------------------------------------------------
class ManifestOpener {
 public:
  ManifestOpener(const std::filesystem::path& directory, const std::vector<std::int32_t>& lost)
      : directory_(directory), lost_(lost.begin(), lost.end()) {}

  Result<Source> open() {
    const std::filesystem::path path = directory_ / kManifestName;
    FORESHARD_ASSIGN(const auto text, read_file(path, limits::kManifest));
    auto manifest = manifest_from_json(text);
    if (!manifest) return fault(path, manifest.error().message);
    manifest_ = *std::move(manifest);
    for (const std::int32_t rank : lost_)
      if (std::ranges::find(manifest_.files, rank, &ShardFile::rank) == manifest_.files.end())
        return fault(path, fmt::format("rank {} cannot be lost: there is no such rank", rank));

    source_.directory = directory_;
    source_.origin = manifest_.origin;
    source_.identity = sha256(text + fmt::format("without {}", fmt::join(lost_, ",")));
    expect();
    for (const ShardFile& file : manifest_.files) {
      if (lost_.contains(file.rank)) continue;
      FORESHARD_TRY(add(file));
    }
    return std::move(source_);
  }

 private:
  // Adds every slice to its rank's list, in the order of the tensors.
  void expect() {
    for (std::size_t t = 0; t < manifest_.tensors.size(); ++t) {
      TensorEntry& entry = manifest_.tensors[t];
      const auto& ranks = entry.layout.mesh.ranks;
      for (std::size_t p = 0; p < ranks.size(); ++p) expected_[ranks[p]].push_back({t, p});
      source_.tensors.push_back({.locations = std::vector<Location>(ranks.size())});
      source_.tensors.back().entry = std::move(entry);
    }
  }

  Shape slice_shape(const Expected& slice) const {
    const TensorEntry& entry = source_.tensors[slice.tensor].entry;
    return extents_of(
        slice_of(entry.layout, entry.shape, static_cast<std::int64_t>(slice.position)));
  }

  Status add(const ShardFile& shard) {
    const std::filesystem::path path = directory_ / shard.path;
    const auto file = InputFile::open(path);
    if (!file) {
      if (file.error().code != Error::Code::kInvalidInput) return file.error();
      return Error{file.error().code,
                   fmt::format("{}; by {} it has the slices of rank {} (--down {} goes on without "
                               "them where other ranks have copies)",
                               file.error().message, kManifestName, shard.rank, shard.rank)};
    }
    if (file->bytes() != shard.bytes)
      return fault(path, fmt::format("has {} bytes, the manifest says {}: it is {}", file->bytes(),
                                     shard.bytes,
                                     file->bytes() < shard.bytes ? "truncated" : "another file"));
    source_.files.push_back({.path = path, .bytes = shard.bytes, .sha256 = shard.sha256});
    return manifest_.format == FileFormat::kRaw ? locate_raw(shard, path)
                                                : locate(shard, path, *file);
  }

  Location& location(const Expected& slice) {
    return source_.tensors[slice.tensor].locations[slice.position];
  }
  std::int32_t last_file() const { return static_cast<std::int32_t>(source_.files.size()) - 1; }

  Status locate_raw(const ShardFile& shard, const std::filesystem::path& path) {
    std::int64_t offset = 0;
    for (const Expected& slice : expected_[shard.rank]) {
      location(slice) = {last_file(), offset};
      const auto bytes = bytes_of(source_.tensors[slice.tensor].entry.type, slice_shape(slice));
      FORESHARD_CHECK(bytes.has_value());
      if (*bytes > shard.bytes - offset)
        return fault(path, fmt::format("ends inside tensor '{}' of rank {}",
                                       source_.tensors[slice.tensor].entry.name, shard.rank));
      offset += *bytes;
    }
    if (offset != shard.bytes)
      return fault(path, fmt::format("has {} bytes after its last tensor", shard.bytes - offset));
    return {};
  }

  Status locate(const ShardFile& shard, const std::filesystem::path& path, const InputFile& file) {
    FORESHARD_ASSIGN(const auto header, header_of(path, file));
    std::map<std::string_view, const StoredTensor*> stored;
    for (const StoredTensor& tensor : header.content.tensors) stored[tensor.name] = &tensor;
    for (const Expected& slice : expected_[shard.rank]) {
      const TensorEntry& entry = source_.tensors[slice.tensor].entry;
      const auto it = stored.find(entry.name);
      if (it == stored.end())
        return fault(path, fmt::format("lacks tensor '{}', of which the manifest says that rank "
                                       "{} has a slice",
                                       entry.name, shard.rank));
      const StoredTensor& tensor = *it->second;
      const Shape wanted = slice_shape(slice);
      if (tensor.type != entry.type || tensor.shape != wanted)
        return fault(path,
                     fmt::format("tensor '{}' is {}[{}], but by the manifest rank {} has {}[{}]",
                                 entry.name, name_of(tensor.type), fmt::join(tensor.shape, ","),
                                 shard.rank, name_of(entry.type), fmt::join(wanted, ",")));
      location(slice) = {last_file(), header.data_begin + tensor.offset};
      stored.erase(it);
    }
    if (!stored.empty())
      return fault(path, fmt::format("has tensor '{}', which the manifest does not place there",
                                     stored.begin()->first));
    return {};
  }

  const std::filesystem::path& directory_;
  std::set<std::int32_t> lost_;
  Manifest manifest_;
  Source source_;
  std::map<std::int32_t, std::vector<Expected>> expected_;  // by rank
};

// --- Hugging Face ----------------------------------------------------------------------------
// Tensor -> file.
using WeightMap = std::map<std::string, std::string>;

Result<WeightMap> weight_map_of(const std::filesystem::path& path) {
  FORESHARD_ASSIGN(const auto text, read_file(path, limits::kManifest));
  try {
    const nlohmann::json json = program::parse_strictly(text);
    const program::JsonNode root(json);
    root.fields({"weight_map"}, {"metadata"});
    const program::JsonNode files = root["weight_map"];
    WeightMap map;
    for (const std::string& name : files.keys()) {
      const std::string file = files[name].text();
      if (file.empty() || file.find('/') != std::string::npos || file == "..")
        files[name].fault("'" + file + "' is not the name of a file beside the index");
      map[name] = file;
    }
    return map;
  } catch (const program::JsonFault& error) {
    return fault(path, error.error.message);
  }
}

Result<Source> open_hugging_face(const std::filesystem::path& directory, bool indexed) {
  WeightMap wanted;
  std::set<std::string> names{std::string(kSingleName)};
  if (indexed) {
    FORESHARD_ASSIGN(wanted, weight_map_of(directory / kHfIndexName));
    names.clear();
    for (const auto& [tensor, file] : wanted) names.insert(file);
  }
  Source source{.directory = directory, .origin = "Hugging Face " + directory.string()};
  std::string known;  // what is known about the contents without reading them
  for (const std::string& name : names) {
    const std::filesystem::path path = directory / name;
    FORESHARD_ASSIGN(const auto file, InputFile::open(path));
    FORESHARD_ASSIGN(const auto header, header_of(path, file));
    known += fmt::format("{}\n{}\n{}\n{}\n", name, file.bytes(), file.modified(), header.text);
    source.files.push_back({.path = path, .bytes = file.bytes()});
    const auto index = static_cast<std::int32_t>(source.files.size()) - 1;
    for (const StoredTensor& tensor : header.content.tensors) {
      if (indexed) {
        const auto it = wanted.find(tensor.name);
        if (it == wanted.end() || it->second != name)
          return fault(path,
                       "has tensor '" + tensor.name + "', which the index does not place there");
        wanted.erase(it);
      }
      source.tensors.push_back(
          {.entry = {.name = tensor.name,
                     .type = tensor.type,
                     .shape = tensor.shape,
                     .layout = replicated_on(mesh_from({{"whole", 1}}), tensor.shape.size())},
           .locations = {{index, header.data_begin + tensor.offset}}});
    }
  }
  if (!wanted.empty())
    return fault(directory / wanted.begin()->second,
                 "lacks tensor '" + wanted.begin()->first + "', which the index places there");
  std::ranges::sort(source.tensors, {}, [](const SourceTensor& tensor) -> const std::string& {
    return tensor.entry.name;
  });
  source.identity = sha256(known);
  return source;
}

}  // namespace

Result<Source> open_source(const std::filesystem::path& directory,
                           const std::vector<std::int32_t>& lost) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error))
    return fault(directory, std::filesystem::exists(directory, error)
                                ? "is a file; a checkpoint is a directory"
                                : "there is no such directory");
  if (std::filesystem::exists(directory / kManifestName, error))
    return ManifestOpener(directory, lost).open();
  if (!lost.empty())
    return fault(directory, "has no manifest, so it has no ranks that could be lost");
  if (std::filesystem::exists(directory / kHfIndexName, error))
    return open_hugging_face(directory, true);
  if (std::filesystem::exists(directory / kSingleName, error))
    return open_hugging_face(directory, false);
  return fault(directory, fmt::format("is not a checkpoint: it has neither {}, {} nor {}",
                                      kManifestName, kHfIndexName, kSingleName));
}

}  // namespace foreshard::checkpoint
