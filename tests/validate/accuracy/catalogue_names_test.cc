// Names of devices and frameworks in tables of measurements, as the catalogue has them.
#include "validate/accuracy/catalogue_names.h"

#include <gtest/gtest.h>

namespace foreshard::accuracy {
namespace {

TEST(Names, Devices) {
  EXPECT_EQ(device_named("A100-SXM4-40GB", {})->name, "A100-SXM-40GB");
  EXPECT_EQ(device_named("A100", 40)->name, "A100-SXM-40GB");
  EXPECT_EQ(device_named("H100-SXM5-80GB", {})->name, "H100-SXM");
  EXPECT_EQ(device_named("A100-PCIe-80GB", {})->name, "A100-PCIe-80GB");
  EXPECT_EQ(device_named("GB200", {})->name, "GB200");
  EXPECT_EQ(device_named("B200", 180)->name, "B200");
  EXPECT_TRUE(device_named("V100", {})->guessed_memory);
  EXPECT_FALSE(device_named("H100", {})->guessed_memory);
  EXPECT_EQ(device_named("H100", 96)->name, "H100-SXM-96GB");
  EXPECT_TRUE(device_named("H100", 64)->another_variant);
  EXPECT_FALSE(device_named("abacus", {}));
}

TEST(Names, Frameworks) {
  EXPECT_EQ(framework_named("Megatron-DeepSpeed (microsoft)", "").entry, "megatron-deepspeed");
  EXPECT_EQ(framework_named("DeepSpeed ZeRO-3", "SC21").entry, "deepspeed-zero3-2021");
  EXPECT_EQ(framework_named("DeepSpeed 0.19.2", "").entry, "deepspeed-transformers");
  EXPECT_EQ(framework_named("DeepSpeed 0.19.2", "", "CPU AdamW offload + Liger").entry,
            "deepspeed-liger");
  EXPECT_EQ(framework_named("LiBai 9fc504c (OneFlow)", "").entry, "oneflow-libai");
  EXPECT_EQ(framework_named("Pax/JAX", "NVIDIA JAX-Toolbox Pax README").entry, "paxml");
  EXPECT_EQ(framework_named("llm-foundry/Composer PyTorch FSDP", "").entry, "llm-foundry");
  EXPECT_EQ(framework_named("NeMo AutoModel (PyTorch FSDP2/DTensor)", "").entry, "pytorch-fsdp");
  EXPECT_EQ(framework_named("NeMo AutoModel (PyTorch FSDP2/DTensor)", "", "TE + DeepEP").entry,
            "automodel");
  EXPECT_EQ(framework_named("Halo (PyTorch FSDP2 + DeepEP)", "").entry, "halo");
  EXPECT_EQ(framework_named("torchtitan 9dec370 (2024-12)", "").entry, "torchtitan");
  EXPECT_EQ(framework_named("torchtitan 9dec370 (2024-12)", "", "eager; memory 82 GiB").entry,
            "torchtitan-eager");
  EXPECT_EQ(framework_named("InternEvo", "").entry, "internevo");
  EXPECT_EQ(framework_named("nanotron v0.5", "").entry, "nanotron");
  EXPECT_EQ(framework_named("PaddleNLP", "").entry, "paddlenlp");
  EXPECT_EQ(framework_named("Megatron-LM", "Narayanan et al. SC21").entry, "megatron-lm-sc21");
  EXPECT_EQ(framework_named("Megatron-LM", "README H100 table").entry, "megatron-lm");
  EXPECT_EQ(framework_named("Megatron-LM", "README H100 table (mcore 0.8)").entry,
            "megatron-core-0.8");
  EXPECT_EQ(framework_named("Megatron-LM 285068c8", "MegaScale (NSDI 2024)").entry,
            "megatron-lm-2022");
  EXPECT_EQ(framework_named("Megatron-LM fork", "Zero Bubble").vocabulary, 32000);
  EXPECT_EQ(framework_named("Megatron-Core", "Megatron-MoE-ModelZoo").entry, "megatron-core-moe");
  EXPECT_EQ(framework_named("Megatron-Core", "MoE Parallel Folding (arXiv 2504.14960)").entry,
            "megatron-core-0.10");
  EXPECT_EQ(framework_named("Megatron-LM f1f03922", "MegaScale-MoE (EuroSys)").entry,
            "megatron-core-0.10");
  EXPECT_EQ(framework_named("NeMo 24.07 / Megatron-Core", "").entry, "nemo");
  EXPECT_EQ(framework_named("NGC Pytorch 25.04, NVIDIA Nemo 25.04", "").entry, "nemo");
  EXPECT_EQ(
      framework_named("NeMo 25.09", "MLPerf Training v5.1 NVIDIA", "logged every 32nd step").entry,
      "nemo-25.09");
  EXPECT_EQ(framework_named("NeMo 24.04", "MLPerf Training v5.1 Cisco", "LoRA rank 16").entry,
            "nemo");
  EXPECT_EQ(framework_named("Megatron-Bridge (NeMo 26.02)", "").entry, "megatron-bridge");
  EXPECT_FALSE(framework_named("nanotron", "").assumed);
  EXPECT_TRUE(framework_named("MaxText/JAX", "").assumed);
}

}  // namespace
}  // namespace foreshard::accuracy
