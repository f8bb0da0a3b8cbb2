// Texts that are often mistaken for a topology, and what to give instead.
#include <algorithm>

#include "topology/import/internal/readers.h"

namespace foreshard::internal {
namespace {

struct Foreign {
  std::string_view sign;  ///< Stands within the first characters of such a text.
  std::string_view what;
  std::string_view instead;
  bool looks_known = false;  ///< One of our formats takes such a text for its own.
};

constexpr std::size_t kHead = 4096;

constexpr std::string_view kDump =
    "run a job with NCCL_TOPO_DUMP_FILE=topo.xml set and import topo.xml";
constexpr std::string_view kMatrix = "import the output of nvidia-smi topo -m";

constexpr Foreign kForeign[]{
    {"<nvidia_smi_log", "the XML of nvidia-smi -q -x, which has no links between GPUs", kMatrix,
     true},
    {"NVSMI LOG", "the text of nvidia-smi -q, which has no links between GPUs", kMatrix},
    {"| NVIDIA-SMI ", "the table of nvidia-smi, which has no links between GPUs", kMatrix},
    {"Status Ok", "the matrix of nvidia-smi topo -p2p, which says who can reach whom and not how",
     kMatrix, true},
    {"hwloc", "the XML of lstopo, which has no NVLinks", kDump, true},
    {"Machine (", "the text of lstopo, which has no NVLinks", kDump},
    {"ROCm System Management Interface",
     "the text of rocm-smi, which gives hops and weights but no rates",
     "RCCL writes what import reads: run a job with NCCL_TOPO_DUMP_FILE=topo.xml set", true},
    {"\"foreshard.", "a result of foreshard", "give the file of another tool"},
};

}  // namespace

Status foreign_text(const ImportRequest& request, bool known) {
  const std::string_view head = request.text.substr(0, kHead);
  const auto found = std::ranges::find_if(kForeign, [&](const Foreign& each) {
    return (each.looks_known || !known) && head.find(each.sign) != std::string_view::npos;
  });
  if (found == std::end(kForeign)) return {};
  return Error{Error::Code::kUnsupported, request.name + ": this is " + std::string(found->what) +
                                              "\n   help: " + std::string(found->instead)};
}

}  // namespace foreshard::internal
