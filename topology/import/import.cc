// The table of formats of machines and clusters (import.h), for `foreshard topology import` and
// `check`. A text that no format recognises is refused, with a remedy where another tool's text is
// known.
#include "topology/import/import.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"

#include "topology/import/internal/readers.h"
#include "topology/plausibility.h"

namespace foreshard {
namespace {

constexpr char32_t kReplacement = 0xfffd;

void append_utf8(char32_t code, std::string& text) {
  const auto rest = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    rest(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    rest(6);
    rest(0);
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    rest(12);
    rest(6);
    rest(0);
  }
}

/// \param low  the index of the less significant byte of a unit: 0 of little-endian text.
std::string from_utf16(std::string_view bytes, std::size_t low) {
  const auto unit = [&](std::size_t at) -> char32_t {
    const auto byte = [&](std::size_t i) {
      return static_cast<char32_t>(static_cast<unsigned char>(bytes[i]));
    };
    return byte(at + low) | byte(at + 1 - low) << 8;
  };
  std::string text;
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    char32_t code = unit(at);
    const bool first = code >= 0xd800 && code < 0xdc00;
    const char32_t next = first && at + 3 < bytes.size() ? unit(at + 2) : 0;
    if (next >= 0xdc00 && next < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (next - 0xdc00);
      at += 2;
    } else if (code >= 0xd800 && code < 0xe000) {
      code = kReplacement;
    }
    append_utf8(code, text);
  }
  return text;
}

// The text in UTF-8 without a byte-order mark. UTF-16 is known by its mark; what is no character
// becomes U+FFFD. An XML declaration, which would name the old encoding, is blanked out.
std::string decoded(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) return std::string(text.substr(3));
  const bool little = text.starts_with("\xff\xfe");
  if (!little && !text.starts_with("\xfe\xff")) return std::string(text);
  std::string result = from_utf16(text.substr(2), little ? 0 : 1);
  if (const auto end = result.find("?>"); result.starts_with("<?xml") && end != std::string::npos)
    std::replace_if(
        result.begin(), result.begin() + static_cast<std::ptrdiff_t>(end + 2),
        [](char c) { return c != '\n'; }, ' ');
  return result;
}

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
  const std::string plain = decoded(text);
  const auto formats = import_formats();
  const auto found =
      std::ranges::find_if(formats, [&](const auto& each) { return each.recognises(plain); });
  return found == formats.end() ? nullptr : &*found;
}

Result<Imported> import_topology(const ImportRequest& as_saved, yaml::Loader& loader) {
  const std::string text = decoded(as_saved.text);
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
