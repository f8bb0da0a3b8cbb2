// What rows of collectives say in words: adapters, transports, forced algorithms, overheads.

#include "tests/test.h"

#include "validate/tables/collective_rows.h"

namespace foreshard::accuracy::row_words_test {

using Names = std::vector<std::string>;

TEST(RowWords, AdaptersAreOfANodeUnlessOfAGpu) {
  const auto node = stated_adapters("EFA 32x100G per node (3200 Gb/s)");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->count, 32);
  EXPECT_DOUBLE_EQ(node->rate / 1_Gbit_s, 100);
  EXPECT_FALSE(node->per_gpu);
  const auto gpu =
      value_of(stated_adapters("1x400G-class NIC per GPU (48.8 GB/s busbw); type not stated"));
  EXPECT_EQ(gpu.count, 1);
  EXPECT_TRUE(gpu.per_gpu);
  // "per GPU" of another part of the sentence is not the adapters'.
  EXPECT_FALSE(stated_adapters("8x200G, one switch per GPU")->per_gpu);
  for (const char* without : {"", "HDR InfiniBand (DGX A100 8 NICs)", "NVLink4 18x", "xG", "4x0G"})
    EXPECT_FALSE(stated_adapters(without)) << without;
}

TEST(RowWords, NetworksNameTheirTransport) {
  EXPECT_EQ(stated_transport("EFA 4x100G per node", "Ampere"), "efa");
  EXPECT_EQ(stated_transport("EFA 32x100G per node", "Hopper"), "efa-rdma");
  EXPECT_EQ(stated_transport("8x200G GPUDirect-TCPXO", "Hopper"), "gpudirect-tcpxo");
  EXPECT_EQ(stated_transport("Slingshot 11, 2x200G env setup 3 of README", "Ampere"), "slingshot");
  EXPECT_EQ(stated_transport("Slingshot 11 as 4 + FI_CXI software matching / alt_read", "Ampere"),
            "slingshot-software-matching");
  EXPECT_EQ(stated_transport("8x400G RoCE", "Hopper"), "roce");
  EXPECT_EQ(stated_transport("HDR InfiniBand", "Ampere"), "");
}

TEST(RowWords, OnlyForcedAlgorithmsLimitTheChoice) {
  EXPECT_EQ(stated_forms("Ring/LL128", "").algorithms, Names{"ring"});
  EXPECT_EQ(stated_forms("Ring/LL128", "").protocols, Names{"LL128"});
  EXPECT_EQ(stated_forms("NVLS", "").algorithms, (Names{"nvls", "nvls_tree"}));
  EXPECT_EQ(stated_forms("NCCL_ALGO=Tree", "").algorithms, Names{"tree"});
  for (const char* none : {"", "NVLS for large (default)", "AWS OFI tuner picks Ring"})
    EXPECT_EQ(stated_forms(none, ""), StatedForms{}) << none;
  const StatedForms off = stated_forms("NVLS off", "");
  EXPECT_FALSE(off.nvls);
  EXPECT_TRUE(off.algorithms.empty());
  EXPECT_FALSE(stated_forms("", "NCCL_NVLS_ENABLE=0, 5 iterations").nvls);
}

TEST(RowWords, GpusOverPcieAloneMayReachEachOthersMemory) {
  EXPECT_TRUE(stated_no_nvlink("PCIe Gen5 x16, no NVLink"));
  EXPECT_FALSE(stated_no_nvlink("NVLink3 bridge pairs + PCIe Gen4"));
  EXPECT_EQ(stated_peer_to_peer("PCIe Gen5, P2P"), true);
  EXPECT_EQ(stated_peer_to_peer("PCIe Gen5, SHM (P2P disabled)"), false);
  EXPECT_EQ(stated_peer_to_peer("PCIe Gen5 x16, no NVLink"), std::nullopt);
}

TEST(RowWords, LoopsOfPyTorchTimeTheirCalls) {
  EXPECT_DOUBLE_EQ(stated_overhead("all_reduce_bench.py, torch.distributed") / 1_us, 20);
  EXPECT_DOUBLE_EQ(stated_overhead("torch.distributed fp16, NCCL kernel time from kineto") / 1_us,
                   0);
  EXPECT_DOUBLE_EQ(stated_overhead("torch.distributed, torch-profiler op duration") / 1_us, 0);
  EXPECT_DOUBLE_EQ(stated_overhead("nccl-tests -n 50") / 1_us, 0);
}

}  // namespace foreshard::accuracy::row_words_test
