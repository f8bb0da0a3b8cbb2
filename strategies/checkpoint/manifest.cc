#include "strategies/checkpoint/manifest.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"

#include "strategies/program/ir/json_node.h"

namespace foreshard::checkpoint {
namespace {

using program::JsonFault;
using program::JsonNode;
using Json = nlohmann::json;

constexpr std::string_view kSchema = "foreshard.checkpoint/1";
constexpr std::array kFormats{FileFormat::kSafetensors, FileFormat::kRaw};
constexpr std::int64_t kMostCount = std::int64_t{1} << 62;
constexpr std::int64_t kMostRank = std::numeric_limits<std::int32_t>::max();

Shape shape_from(const JsonNode& node) {
  Shape shape(node.size());
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = node.at(i).integer(0, kMostCount);
  return shape;
}

FileFormat format_from(const JsonNode& node) {
  const std::string name = node.text();
  for (const FileFormat format : kFormats)
    if (name_of(format) == name) return format;
  node.fault("'" + name + "' is not a file format; legal: safetensors, raw");
}

// A path with a folder in it could lead out of the checkpoint.
bool is_plain_name(const std::string& path) {
  return !path.empty() && path != "." && path != ".." && path.find('/') == std::string::npos &&
         path.find('\0') == std::string::npos && path != kManifestName;
}

bool is_digest(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return text.size() == 64 && text.find_first_not_of(kDigits) == std::string::npos;
}

ShardFile file_from(const JsonNode& node) {
  node.fields({"rank", "path", "bytes", "sha256"});
  ShardFile file{.rank = static_cast<std::int32_t>(node["rank"].integer(0, kMostRank)),
                 .path = node["path"].text(),
                 .bytes = node["bytes"].integer(0, kMostCount),
                 .sha256 = node["sha256"].text()};
  if (!is_plain_name(file.path))
    node["path"].fault("'" + file.path + "' is not the name of a file inside the checkpoint");
  if (!is_digest(file.sha256)) node["sha256"].fault("is not 64 digits of 0-9 and a-f");
  return file;
}

Layout layout_from(const JsonNode& node) {
  node.fields({"mesh", "ranks", "dims"}, {"sizes"});
  Layout layout;
  const JsonNode mesh = node["mesh"];
  for (std::size_t i = 0; i < mesh.size(); ++i) {
    const JsonNode axis = mesh.at(i);
    if (axis.size() != 2) axis.fault("an axis is a name and a size");
    layout.mesh.axes.push_back({axis.at(0).text(), axis.at(1).integer(1, kMostRank)});
  }
  const JsonNode ranks = node["ranks"];
  layout.mesh.ranks.resize(ranks.size());
  for (std::size_t i = 0; i < layout.mesh.ranks.size(); ++i)
    layout.mesh.ranks[i] = static_cast<std::int32_t>(ranks.at(i).integer(0, kMostRank));
  const JsonNode dims = node["dims"];
  layout.attribute.dims.resize(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const JsonNode axes = dims.at(d);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::string name = axes.at(i).text();
      const auto it = std::ranges::find(layout.mesh.axes, name, &MeshAxis::name);
      if (it == layout.mesh.axes.end()) axes.at(i).fault("the mesh has no axis '" + name + "'");
      layout.attribute.dims[d].push_back(static_cast<Axis>(it - layout.mesh.axes.begin()));
    }
  }
  if (node.has("sizes")) {
    const JsonNode sizes = node["sizes"];
    layout.attribute.sizes.resize(sizes.size());
    for (std::size_t d = 0; d < sizes.size(); ++d)
      layout.attribute.sizes[d] = shape_from(sizes.at(d));
  }
  return layout;
}

TensorEntry tensor_from(const JsonNode& node, const std::vector<Layout>& layouts) {
  node.fields({"name", "dtype", "shape", "layout"}, {"unpadded"});
  TensorEntry tensor{.name = node["name"].text(), .shape = shape_from(node["shape"])};
  if (tensor.name.empty()) node["name"].fault("is empty");
  if (node.has("unpadded")) tensor.unpadded = shape_from(node["unpadded"]);
  const std::string type = node["dtype"].text();
  const auto known = element_type_named(type);
  if (!known)
    node["dtype"].fault(fmt::format("unknown dtype '{}' of tensor '{}'; known are {}", type,
                                    tensor.name, join(element_type_names())));
  tensor.type = *known;
  const auto count = static_cast<std::int64_t>(layouts.size());
  if (count == 0) node["layout"].fault("there are no layouts");
  tensor.layout = layouts[static_cast<std::size_t>(node["layout"].integer(0, count - 1))];
  if (const auto why = fault_in(tensor)) node.fault("tensor '" + tensor.name + "': " + *why);
  return tensor;
}

Manifest read(const Json& json) {
  const JsonNode root(json);
  root.fields({"schema", "format", "origin", "files", "layouts", "tensors"}, {"conversion"});
  if (root["schema"].text() != kSchema)
    root["schema"].fault(fmt::format("expected '{}', found '{}'", kSchema, root["schema"].text()));
  Manifest manifest{.format = format_from(root["format"]), .origin = root["origin"].text()};
  if (root.has("conversion")) manifest.conversion = root["conversion"].text();

  std::set<std::int32_t> ranks;
  std::set<std::string> paths;
  const JsonNode file_nodes = root["files"];
  for (std::size_t i = 0; i < file_nodes.size(); ++i) {
    const JsonNode node = file_nodes.at(i);
    manifest.files.push_back(file_from(node));
    const ShardFile& file = manifest.files.back();
    if (!ranks.empty() && file.rank <= *ranks.rbegin())
      node["rank"].fault(fmt::format("rank {} does not ascend", file.rank));
    ranks.insert(file.rank);
    if (!paths.insert(file.path).second) node["path"].fault("'" + file.path + "' appears twice");
  }
  std::vector<Layout> layouts;
  const JsonNode layout_nodes = root["layouts"];
  for (std::size_t i = 0; i < layout_nodes.size(); ++i) {
    const JsonNode node = layout_nodes.at(i);
    layouts.push_back(layout_from(node));
    for (const std::int32_t rank : layouts.back().mesh.ranks)
      if (!ranks.contains(rank)) node["ranks"].fault(fmt::format("rank {} has no file", rank));
  }
  std::set<std::string> names;
  const std::int64_t most = limits::raised(limits::kSlices);
  std::int64_t slices = 0;
  for (std::size_t i = 0; i < root["tensors"].size(); ++i) {
    manifest.tensors.push_back(tensor_from(root["tensors"].at(i), layouts));
    slices += manifest.tensors.back().layout.mesh.size();
    if (slices > most)  // stop early: every tensor holds a layout of its own
      root["tensors"].at(i).fault(
          fmt::format("more than {} slices with it; {}", most, limits::kRemedy));
    const std::string& name = manifest.tensors.back().name;
    if (!names.insert(name).second)
      root["tensors"].at(i).fault("tensor '" + name + "' appears twice");
  }
  return manifest;
}

Json to_value(const Layout& layout) {
  Json mesh = Json::array();
  for (const MeshAxis& axis : layout.mesh.axes) mesh.push_back({axis.name, axis.size});
  Json dims = Json::array();
  for (const auto& axes : layout.attribute.dims) {
    Json names = Json::array();
    for (const Axis axis : axes)
      names.push_back(layout.mesh.axes[static_cast<std::size_t>(axis)].name);
    dims.push_back(std::move(names));
  }
  Json value{{"mesh", std::move(mesh)}, {"ranks", layout.mesh.ranks}, {"dims", std::move(dims)}};
  if (!layout.attribute.sizes.empty()) value["sizes"] = layout.attribute.sizes;
  return value;
}

// Writes each member of an array on its own line: long, yet readable, and good for comparing files.
std::string lines_of(const std::vector<Json>& values) {
  std::string text = "[";
  for (const Json& value : values) text += (text.size() == 1 ? "\n  " : ",\n  ") + value.dump();
  return text + (values.empty() ? "]" : "\n ]");
}

}  // namespace

std::string_view name_of(FileFormat format) {
  return format == FileFormat::kSafetensors ? "safetensors" : "raw";
}

std::optional<std::string> fault_in(const TensorEntry& tensor) {
  if (!bytes_of(tensor.type, tensor.shape)) return "is larger than 2^62 bytes";
  if (!tensor.unpadded.empty()) {
    if (tensor.unpadded.size() != tensor.shape.size())
      return fmt::format("'unpadded' has {} dimensions, its shape {}", tensor.unpadded.size(),
                         tensor.shape.size());
    for (std::size_t d = 0; d < tensor.shape.size(); ++d)
      if (tensor.unpadded[d] < 0 || tensor.unpadded[d] > tensor.shape[d])
        return fmt::format("'unpadded' is {} in dimension {}, more than the {} of its shape",
                           tensor.unpadded[d], d, tensor.shape[d]);
  }
  if (auto fault = fault_in(tensor.layout, tensor.shape)) return fault;
  if (!tensor.layout.attribute.partial.empty())
    return "its layout is partial; a checkpoint holds values, not summands";
  return std::nullopt;
}

Result<Manifest> manifest_from_json(std::string_view text) {
  try {
    return read(program::parse_strictly(text));
  } catch (const JsonFault& fault) {
    return fault.error;
  }
}

std::string to_json(const Manifest& manifest) {
  std::vector<const Layout*> layouts;  // distinct, in the order of their first use
  std::vector<Json> tensors;
  for (const TensorEntry& tensor : manifest.tensors) {
    auto it = std::ranges::find_if(layouts,
                                   [&](const Layout* layout) { return *layout == tensor.layout; });
    if (it == layouts.end()) it = layouts.insert(it, &tensor.layout);
    Json value{{"name", tensor.name},
               {"dtype", name_of(tensor.type)},
               {"shape", tensor.shape},
               {"layout", it - layouts.begin()}};
    if (!tensor.unpadded.empty()) value["unpadded"] = tensor.unpadded;
    tensors.push_back(std::move(value));
  }
  std::vector<Json> files;
  files.reserve(manifest.files.size());
  for (const ShardFile& file : manifest.files)
    files.push_back(
        {{"rank", file.rank}, {"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  std::vector<Json> layout_values;
  layout_values.reserve(layouts.size());
  for (const Layout* layout : layouts) layout_values.push_back(to_value(*layout));
  const auto quoted = [](std::string_view value) { return Json(value).dump(); };
  std::string text =
      fmt::format("{{\"schema\": {},\n \"format\": {},\n \"origin\": {},\n", quoted(kSchema),
                  quoted(name_of(manifest.format)), quoted(manifest.origin));
  if (!manifest.conversion.empty())
    text += fmt::format(" \"conversion\": {},\n", quoted(manifest.conversion));
  return text + fmt::format(" \"files\": {},\n \"layouts\": {},\n \"tensors\": {}}}\n",
                            lines_of(files), lines_of(layout_values), lines_of(tensors));
}

}  // namespace foreshard::checkpoint
