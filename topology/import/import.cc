#include "topology/import/import.h"

#include <algorithm>
#include <array>

#include "base/text.h"

#include "topology/import/internal/decode.h"
#include "topology/import/internal/readers.h"
#include "topology/plausibility.h"

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

/// The result must build, so that faults appear now and not later; what is probably a mistake
/// becomes a remark.
Status fault_in_result(const ImportRequest& request, Imported& imported, yaml::Loader& loader) {
  ClusterConfig config;
  if (const auto* node = std::get_if<NodeConfig>(&imported.what)) {
    config.node = yaml::Ref<NodeConfig>{*node, ""};
  } else {
    config = std::get<ClusterConfig>(imported.what);
  }
  const auto cluster = build_cluster(config);
  if (!cluster) return fault(request, "describes what cannot be built: " + cluster.error().message);
  FORESHARD_ASSIGN(const auto hardware, read_hardware(loader));
  for (const auto& finding : implausible(config, *cluster, hardware))
    if (finding.severity == Severity::kWarning)
      imported.remarks.push_back("warning: " + finding.rule + ": " + finding.place + ": " +
                                 finding.message + " (" + finding.remedy + ")");
  std::stable_partition(imported.remarks.begin(), imported.remarks.end(),
                        [](const std::string& remark) { return remark.starts_with("warning: "); });
  return {};
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
      {"slurm", "SLURM's topology.conf and topology.yaml: switches or blocks over hosts.",
       internal::looks_like_slurm, internal::read_slurm},
  }};
  return kFormats;
}

const ImportFormat* import_format_of(std::string_view text) {
  const std::string plain = internal::decoded(text);
  const auto formats = import_formats();
  const auto found =
      std::ranges::find_if(formats, [&](const auto& each) { return each.recognises(plain); });
  return found == formats.end() ? nullptr : &*found;
}

Result<Imported> import_topology(const ImportRequest& as_saved, yaml::Loader& loader) {
  const std::string text = internal::decoded(as_saved.text);
  ImportRequest request = as_saved;
  request.text = text;
  if (request.format.empty()) {
    const bool known = import_format_of(text) != nullptr;
    FORESHARD_TRY(internal::foreign_text(request, known));
  }
  FORESHARD_ASSIGN(const auto format, format_of(request));
  FORESHARD_ASSIGN(Imported imported, format->read(request, loader));
  FORESHARD_TRY(fault_in_result(request, imported, loader));
  return imported;
}

}  // namespace foreshard
