// What the reader of NCCL's tables refuses: cells that no formula reads, and gaps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/yaml/loader.h"

#include "strategies/comm/nccl/tables.h"

namespace foreshard::comm::nccl {
namespace nccl_tables_test {

using testing::HasSubstr;

// The shipped file with this value at the path, as `--set` writes it.
std::string fault(const std::string& path, const std::string& value) {
  yaml::Loader loader(
      {.catalogue = {FORESHARD_SOURCE_DIR "/configs"}, .overrides = {{path, value}}});
  const auto tables = loader.read_ref<Tables>("nccl-2.28");
  return tables ? "accepted" : tables.error().message;
}

TEST(NcclTables, RefuseLatenciesThatNoFormulaReads) {
  EXPECT_THAT(fault("latencies.6.network", "{simple: 14 us}"),
              HasSubstr("'pat': network is never read; remove it"));
  EXPECT_THAT(fault("latencies.4.nvlink.ll", "1 us"),
              HasSubstr("'nvls': nvlink.ll is never read; remove it"));
  EXPECT_THAT(fault("latencies.0.pcie.ll128", "1.9 us"),
              HasSubstr("'tree': pcie.ll128 is never read; remove it"));
  EXPECT_THAT(fault("latencies.2.pcie", "{simple: 3.7 us}"),
              HasSubstr("'collnet_direct': pcie is never read; remove it"));
}

TEST(NcclTables, NameWhatIsMissing) {
  EXPECT_THAT(fault("latencies.1.network", "{simple: 14 us}"),
              HasSubstr("'ring': network.ll is missing"));
  EXPECT_THAT(fault("latencies.0", "{algorithm: tree}"), HasSubstr("'tree': base is missing"));
  EXPECT_THAT(fault("latencies.6.algorithm", "pta"),
              HasSubstr("NCCL has no algorithm 'pta'; it has tree, ring, collnet_direct"));
  EXPECT_THAT(fault("latencies.6",
                    "{algorithm: nvls, nvlink: {simple: 1 us}, "
                    "network: {simple: 1 us}}"),
              HasSubstr("must list each algorithm once; 'nvls' is there 2 times"));
}

TEST(NcclTables, RefuseWhatAGenerationCannotUse) {
  EXPECT_THAT(fault("generations.0.compute_capability", "60"),
              HasSubstr("the first is for all devices before the second"));
  EXPECT_THAT(fault("generations.2.compute_capability", "70"),
              HasSubstr("must ascend in compute_capability"));
  EXPECT_THAT(fault("generations.0.ring_ll128", "{one: 1 GB/s, two: 1 GB/s, more: 1 GB/s}"),
              HasSubstr("NCCL runs LL128 from compute capability 70 on; remove ring_ll128"));
  EXPECT_THAT(fault("generations.1.compute_capability", "65"), HasSubstr("remove ring_ll128"));
}

}  // namespace nccl_tables_test
}  // namespace foreshard::comm::nccl
