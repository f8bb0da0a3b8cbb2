// Names of frameworks and models in tables of measured steps, as the catalogue has them.
#include "evidence/row_format.h"

#include "tests/test.h"

namespace foreshard::accuracy {
namespace {

class Format : public testing::Test {
 protected:
  const FrameworkWords& framework_named(const std::string& framework, const std::string& source,
                                        const std::string& notes = "") const {
    return format_.framework_named(framework, source, notes);
  }
  yaml::Loader loader_{shipped_options()};
  RowFormat format_ = *loader_.read_ref<RowFormat>("training-steps");
};

TEST_F(Format, Frameworks) {
  EXPECT_EQ(framework_named("Megatron-DeepSpeed (microsoft)", "").take.name, "megatron-deepspeed");
  EXPECT_EQ(framework_named("DeepSpeed ZeRO-3", "SC21").take.name, "deepspeed-zero3-2021");
  EXPECT_EQ(framework_named("DeepSpeed 0.19.2", "").take.name, "deepspeed-transformers");
  EXPECT_EQ(framework_named("DeepSpeed 0.19.2", "", "CPU AdamW offload + Liger").take.name,
            "deepspeed-liger");
  EXPECT_EQ(framework_named("LiBai 9fc504c (OneFlow)", "").take.name, "oneflow-libai");
  EXPECT_EQ(framework_named("Pax/JAX", "NVIDIA JAX-Toolbox Pax README").take.name, "paxml");
  EXPECT_EQ(framework_named("llm-foundry/Composer PyTorch FSDP", "").take.name, "llm-foundry");
  EXPECT_EQ(framework_named("NeMo AutoModel (PyTorch FSDP2/DTensor)", "").take.name,
            "pytorch-fsdp");
  EXPECT_EQ(framework_named("NeMo AutoModel (PyTorch FSDP2/DTensor)", "", "TE + DeepEP").take.name,
            "automodel");
  EXPECT_EQ(framework_named("Halo (PyTorch FSDP2 + DeepEP)", "").take.name, "halo");
  EXPECT_EQ(framework_named("torchtitan 9dec370 (2024-12)", "").take.name, "torchtitan-2024");
  EXPECT_EQ(framework_named("torchtitan 9dec370 (2024-12)", "", "eager; memory 82 GiB").take.name,
            "torchtitan-2024-eager");
  EXPECT_EQ(framework_named("torchtitan 157a12c (2024-04)", "", "eager").take.name,
            "torchtitan-2024-04");
  EXPECT_EQ(framework_named("torchtitan 820504e (2025-06)", "").take.name, "torchtitan");
  EXPECT_EQ(framework_named("PyTorch FSDP (fms-fsdp), torch.compile", "").take.name,
            "pytorch-fsdp");
  EXPECT_EQ(framework_named("PyTorch FSDP (fms-fsdp), eager", "").take.name, "pytorch-fsdp-eager");
  EXPECT_EQ(framework_named("torchtune (PyTorch, FSDP of 1)", "", "packed; eager").take.name,
            "torchtune-eager");
  EXPECT_EQ(framework_named("torchtune (PyTorch FSDP2)", "", "LoRA finetuning").take.name,
            "torchtune");
  EXPECT_EQ(framework_named("PyTorch FSDP2, eager", "", "parameters gathered in fp32").take.name,
            "pytorch-fsdp-autocast");
  EXPECT_EQ(framework_named("InternEvo", "").take.name, "internevo");
  EXPECT_EQ(framework_named("nanotron v0.5", "").take.name, "nanotron");
  EXPECT_EQ(framework_named("PaddleNLP", "").take.name, "paddlenlp");
  EXPECT_EQ(framework_named("Megatron-LM", "Narayanan et al. SC21").take.name, "megatron-lm-sc21");
  EXPECT_EQ(framework_named("Megatron-LM", "README H100 table").take.name, "megatron-lm");
  EXPECT_EQ(framework_named("Megatron-LM", "README H100 table (mcore 0.8)").take.name,
            "megatron-core-0.8");
  EXPECT_EQ(framework_named("Megatron-LM 285068c8", "MegaScale (NSDI 2024)").take.name,
            "megatron-lm-2022");
  EXPECT_EQ(framework_named("Megatron-LM fork", "Zero Bubble").vocabulary, 32000);
  EXPECT_EQ(framework_named("Megatron-Core", "Megatron-MoE-ModelZoo").take.name,
            "megatron-core-moe");
  EXPECT_EQ(framework_named("Megatron-Core", "MoE Parallel Folding (arXiv 2504.14960)").take.name,
            "megatron-core-0.10");
  EXPECT_EQ(framework_named("Megatron-LM f1f03922", "MegaScale-MoE (EuroSys)").take.name,
            "megatron-core-0.10");
  EXPECT_EQ(framework_named("NeMo 24.07 / Megatron-Core", "").take.name, "nemo");
  EXPECT_EQ(framework_named("NGC Pytorch 25.04, NVIDIA Nemo 25.04", "").take.name, "nemo");
  EXPECT_EQ(framework_named("NeMo 25.09", "MLPerf Training v5.1 NVIDIA", "logged every 32nd step")
                .take.name,
            "nemo-25.09");
  EXPECT_EQ(framework_named("NeMo 24.04", "MLPerf Training v5.1 Cisco", "LoRA rank 16").take.name,
            "nemo");
  EXPECT_EQ(framework_named("Megatron-Bridge (NeMo 26.02)", "").take.name, "megatron-bridge");
  EXPECT_FALSE(framework_named("nanotron", "").is_assumed);
  EXPECT_TRUE(framework_named("MaxText/JAX", "").is_assumed);
}

TEST_F(Format, Devices) {
  EXPECT_EQ(format_.device_named("H100", "torchao benchmarks", "")->take.name, "H100-SXM-96GB");
  EXPECT_EQ(format_.device_named("B200", "torchao benchmarks", "power limited B200")->take.name,
            "B200-750W");
  EXPECT_EQ(format_.device_named("B200", "torchao benchmarks", ""), nullptr);
  EXPECT_EQ(format_.device_named("H100", "another source", ""), nullptr);
}

TEST_F(Format, Models) {
  EXPECT_EQ(format_.family_named("Llama-3.1-70B")->vocabulary, 128256);
  EXPECT_EQ(format_.family_named("Llama-2-70B")->vocabulary, 32000);
  EXPECT_TRUE(format_.family_named("GPT OSS 20B")->sinks);
  EXPECT_TRUE(format_.family_named("GPT-3.6B")->dropout);
  EXPECT_EQ(format_.family_named("181B"), nullptr);
  EXPECT_EQ(format_.hybrid_named("Nemotron V3 Nano 30B")->take->pattern.empty(), false);
  EXPECT_EQ(format_.hybrid_named("nemotronh_56b")->take.name, "nemotron-h-56b");
  EXPECT_EQ(format_.schedule_named("ZBV-formatted")->schedule, "zb-v");
  EXPECT_EQ(format_.schedule_named("zigzag"), nullptr);
}

// As nanotron cuts 4 layers and a head that weighs as much as one of them over 2 stages: the first
// stage closes when it has more than half of the five.
TEST(LayersByWeights, PutsMoreLayersOnTheFirstStage) {
  Model model;
  model.layers = 4;
  model.hidden = 100;
  model.ffn = 200;
  model.vocabulary = 4 * 100 + 3 * 200;
  EXPECT_THAT(layers_by_weights(model, 2), ElementsAre(3, 1));
}

// A table with other names of columns needs a file, and no code.
TEST_F(Format, IsToldByTheNamesOfColumns) {
  const auto of = [](const char* header) {
    const auto table = value_of(read_csv(header, "table.csv"));
    return value_of(format_of(table, {FORESHARD_SOURCE_DIR "/configs"})) != nullptr;
  };
  EXPECT_TRUE(of("id,model_name,metric\n1,2,3\n"));
  EXPECT_FALSE(of("op,bytes,time_us,nodes\n1,2,3,4\n"));
}

std::string fault(const std::string& change) {
  yaml::Loader loader(shipped_options());
  const auto format = loader.read_text<RowFormat>("extends: training-steps\n" + change, "text");
  return message_of(format, "");
}

TEST(RowFormats, AreCheckedAsAWhole) {
  EXPECT_EQ(fault(""), "");
  EXPECT_THAT(fault("required: [tides]"), HasSubstr("gives no name to the column 'tides'"));
  EXPECT_THAT(fault("frameworks: [{framework: Halo, take: halo}]"),
              HasSubstr("must end with a line without words"));
  EXPECT_THAT(fault("plain_family: bert"), HasSubstr("lists no family with the word 'bert'"));
  EXPECT_THAT(fault("frameworks: [{take: hallo}]"), HasSubstr("hallo"));
}

}  // namespace
}  // namespace foreshard::accuracy
