#include <gmock/gmock.h>

#include "tests/topology/import/imports.h"

namespace foreshard {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ForeignText, IsCalledWhatItIsWithWhatToGiveInstead) {
  const struct {
    const char* text;
    const char* what;
    const char* instead;
  } cases[] = {
      {"<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n"
       "<nvidia_smi_log>\n</nvidia_smi_log>\n",
       "the XML of nvidia-smi -q -x", "nvidia-smi topo -m"},
      {"\n==============NVSMI LOG==============\n\nTimestamp : Mon\n", "the text of nvidia-smi -q",
       "nvidia-smi topo -m"},
      {"+-----+\n| NVIDIA-SMI 535.54   Driver Version: 535.54   CUDA Version: 12.2 |\n",
       "the table of nvidia-smi", "nvidia-smi topo -m"},
      {" \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n\nLegend:\n\n  X    = Self\n  OK   = Status "
       "Ok\n",
       "the matrix of nvidia-smi topo -p2p", "nvidia-smi topo -m"},
      {"<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology/>\n",
       "the XML of lstopo", "NCCL_TOPO_DUMP_FILE"},
      {"Machine (P#0 total=527878MB)\n  Package L#0\n", "the text of lstopo",
       "NCCL_TOPO_DUMP_FILE"},
      {"=== ROCm System Management Interface ===\n GPU0 GPU1\n", "the text of rocm-smi",
       "NCCL_TOPO_DUMP_FILE"},
      {"{\n  \"schema\": \"foreshard.prediction/1\"\n}\n", "a result of foreshard", "another tool"},
  };
  for (const auto& [text, what, instead] : cases)
    EXPECT_THAT(import_fault(text), AllOf(HasSubstr(what), HasSubstr(instead))) << text;
}

// The table of nvidia-smi may stand above the matrix, and a word in a comment.
TEST(ForeignText, IsNoneWhereATopologyIsToo) {
  const std::string table = "+-----+\n| NVIDIA-SMI 535.54   Driver Version: 535.54 |\n+-----+\n\n";
  EXPECT_THAT(
      import_fault(table + "\tGPU0\tGPU1\nGPU0\t X \tNV12\nGPU1\tNV12\t X \n", "A100-SXM-80GB"),
      testing::Not(HasSubstr("the table of nvidia-smi")));
  EXPECT_THAT(import_fault("# Machine (west)\nSwitchName=s0 Nodes=a[0-3]\n"),
              testing::Not(HasSubstr("lstopo")));
}

}  // namespace
}  // namespace foreshard
