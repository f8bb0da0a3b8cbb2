#include "topology/import/import.h"

#include <algorithm>
#include <array>

#include "base/text.h"

#include "topology/import/internal/readers.h"

namespace foreshard {
namespace {

Error fault(const ImportRequest& request, const std::string& why) {
  return {Error::Code::kInvalidInput, request.name + ": " + why};
}

Result<const ImportFormat*> format_of(const ImportRequest& request) {
  std::vector<std::string> names;
  for (const auto& format : import_formats()) {
    if (request.format.empty() ? format.recognises(request.text) : format.name == request.format)
      return &format;
    names.emplace_back(format.name);
  }
  if (!request.format.empty())
    return fault(request,
                 "there is no format '" + request.format + "': choose " + quoted_choice(names));
  return fault(
      request,
      "has none of the known formats; name its format with --as: " + quoted_choice(names) +
          "\n   help: nvidia-smi topo -m > topo.txt writes one; foreshard's own files need "
          "no import");
}

/// What comes out must build, so that no one finds out later.
std::optional<Error> fault_in_result(const ImportRequest& request, const Imported& imported) {
  ClusterConfig config;
  if (const auto* node = std::get_if<NodeConfig>(&imported.what)) {
    config.node = yaml::Ref<NodeConfig>{*node, ""};
  } else {
    config = std::get<ClusterConfig>(imported.what);
  }
  const auto cluster = build_cluster(config);
  if (cluster) return std::nullopt;
  return fault(request, "describes what cannot be built: " + cluster.error().message);
}

}  // namespace

namespace internal {

Error import_error(const ImportRequest& request, std::int64_t line, const std::string& why) {
  return {Error::Code::kInvalidInput,
          request.name + ":" + std::to_string(line) + ": error: " + why};
}

}  // namespace internal

std::span<const ImportFormat> import_formats() {
  static constexpr std::array<ImportFormat, 4> kFormats{{
      {"nccl-xml", "What NCCL writes to NCCL_TOPO_DUMP_FILE: one host.",
       internal::looks_like_nccl_xml, internal::read_nccl_xml},
      {"nvidia-smi", "The text of `nvidia-smi topo -m`: one host.", internal::looks_like_nvidia_smi,
       internal::read_nvidia_smi},
      {"paddle", "PaddlePaddle's cluster JSON (auto_parallel): machines, devices, links.",
       internal::looks_like_paddle, internal::read_paddle},
      {"slurm", "SLURM's topology.conf: a tree of switches over hosts.", internal::looks_like_slurm,
       internal::read_slurm},
  }};
  return kFormats;
}

Result<Imported> import_topology(const ImportRequest& request, yaml::Loader& loader) {
  const auto format = format_of(request);
  if (!format) return format.error();
  auto imported = (*format)->read(request, loader);
  if (!imported) return imported;
  if (auto error = fault_in_result(request, *imported)) return *std::move(error);
  return imported;
}

}  // namespace foreshard
