// Tensors with the names of Hugging Face under a strategy: where each lies, by hand.
#include "strategies/checkpoint/hugging_face.h"

#include "tests/strategies/checkpoint/folders.h"
#include "tests/strategies/graph/written_model.h"
#include "tests/test.h"

namespace foreshard::checkpoint {
namespace {

Source source_of(const std::vector<std::pair<std::string, Shape>>& tensors) {
  Source source{.origin = "Hugging Face somewhere"};
  for (const auto& [name, shape] : tensors)
    source.tensors.push_back(
        {.entry = tensor(name, ElementType::kBf16, shape,
                         replicated_on(mesh_from({{"whole", 1}}), shape.size()))});
  return source;
}

// Llama's kind: 2 layers, 4 heads and 2 key heads of 2, a vocabulary of 9, padded to 10 two ways.
std::vector<PlacedTensor> placed(std::int64_t tensor, std::int64_t pipeline) {
  Model model = written_model(
      "name: m, layers: 2, hidden: 8, heads: 4, kv_heads: 2, ffn: 12, vocabulary: 9, sequence: 4, "
      "norm: rms-norm, activation: swiglu, positions: rotary, bias: false, tied_embeddings: false, "
      "dropout: false");
  Strategy strategy;
  strategy.tensor_parallel = tensor;
  strategy.pipeline_parallel = pipeline;
  strategy.framework.value.vocabulary_multiple = 1;
  return parameters_of(model, strategy);
}

const std::vector<std::pair<std::string, Shape>> kLlama{
    {"model.embed_tokens.weight", {9, 8}},
    {"model.layers.0.self_attn.k_proj.weight", {4, 8}},
    {"model.layers.1.self_attn.o_proj.weight", {8, 8}},
    {"model.layers.1.mlp.gate_proj.weight", {12, 8}},
    {"model.layers.1.input_layernorm.weight", {8}},
    {"model.layers.1.self_attn.rotary_emb.inv_freq", {1}},
    {"model.norm.weight", {8}},
    {"lm_head.weight", {9, 8}},
};

std::string box_of(const TensorEntry& entry, std::int64_t position) {
  const Box box = slice_of(entry.layout, entry.shape, position);
  std::string text;
  for (std::size_t d = 0; d < box.begin.size(); ++d)
    text += (d == 0 ? "" : " ") + std::to_string(box.begin[d]) + ":" + std::to_string(box.end[d]);
  return text;
}

TEST(HuggingFaceNames, LieAsTheParametersTheyAre) {
  const auto target = value_of(target_by_parameters(source_of(kLlama), placed(2, 2)));
  EXPECT_THAT(target.left_out, ElementsAre("model.layers.1.self_attn.rotary_emb.inv_freq"));
  std::vector<std::string> second;  // on the second rank of the tensor's stage
  for (const TensorEntry& entry : target.tensors) {
    EXPECT_EQ(fault_in(entry), std::nullopt) << entry.name;
    second.push_back(std::to_string(entry.layout.mesh.ranks[1]) + ": " + box_of(entry, 1));
  }
  EXPECT_THAT(second, ElementsAre("1: 5:10 0:8",  // of 10 rows, the last of which pads
                                  "1: 2:4 0:8", "3: 0:8 4:8", "3: 6:12 0:8", "3: 0:8", "3: 0:8",
                                  "3: 5:10 0:8"));
  EXPECT_EQ(target.tensors.back().unpadded, (Shape{9, 8}));
}

// By hand: a layer has 8 (8 + 4 + 4) + 64 + 3 x 8 x 12 + 16 = 496 elements.
TEST(HuggingFaceNames, AreAllOfTheModel) {
  std::vector<std::pair<std::string, Shape>> all{{"model.embed_tokens.weight", {9, 8}},
                                                 {"model.norm.weight", {8}},
                                                 {"lm_head.weight", {9, 8}}};
  for (const std::string layer : {"model.layers.0.", "model.layers.1."})
    for (const auto& [name, shape] :
         std::vector<std::pair<std::string, Shape>>{{"self_attn.q_proj", {8, 8}},
                                                    {"self_attn.k_proj", {4, 8}},
                                                    {"self_attn.v_proj", {4, 8}},
                                                    {"self_attn.o_proj", {8, 8}},
                                                    {"mlp.gate_proj", {12, 8}},
                                                    {"mlp.up_proj", {12, 8}},
                                                    {"mlp.down_proj", {8, 12}},
                                                    {"input_layernorm", {8}},
                                                    {"post_attention_layernorm", {8}}})
      all.push_back({layer + name + ".weight", shape});
  const auto fault = [](const std::vector<std::pair<std::string, Shape>>& tensors) {
    const auto placement = placed(2, 2);
    const auto target = value_of(target_by_parameters(source_of(tensors), placement));
    return message_of(other_elements(target, placement), "none");
  };
  EXPECT_EQ(fault(all), "none");
  auto less = all;
  less.pop_back();
  EXPECT_THAT(fault(less), HasSubstr("holds 488 parameters for layer 1, but the model that --model "
                                     "describes has 496"));
  auto wider = all;
  wider[7].second = {16, 8};
  EXPECT_THAT(fault(wider), HasSubstr("528 parameters for layer 0"));
  auto headless = all;
  headless.erase(headless.begin() + 2);
  EXPECT_THAT(fault(headless), HasSubstr("80 parameters for embeddings, final norm"));
}

// InternLM 2: of 2 key heads and 4 heads, each group has 2 heads, a key and a value of width 2.
TEST(HuggingFaceNames, OfInternLm2AndStarCoder2) {
  const auto target =
      value_of(target_by_parameters(source_of({{"model.tok_embeddings.weight", {9, 8}},
                                               {"model.layers.0.attention.wqkv.weight", {16, 8}},
                                               {"model.layers.0.attention.wo.weight", {8, 8}},
                                               {"model.layers.0.feed_forward.w1.weight", {12, 8}},
                                               {"model.layers.0.feed_forward.w3.weight", {12, 8}},
                                               {"model.layers.0.feed_forward.w2.weight", {8, 12}},
                                               {"model.layers.0.attention_norm.weight", {8}},
                                               {"model.layers.1.mlp.c_fc.weight", {12, 8}},
                                               {"model.layers.1.mlp.c_fc.bias", {12}},
                                               {"model.layers.1.mlp.c_proj.weight", {8, 12}},
                                               {"model.layers.1.mlp.c_proj.bias", {8}},
                                               {"output.weight", {9, 8}}}),
                                    placed(2, 1)));
  std::vector<std::string> second;
  for (const TensorEntry& entry : target.tensors) second.push_back(box_of(entry, 1));
  EXPECT_THAT(second,
              ElementsAre("5:10 0:8", "8:16 0:8", "0:8 4:8", "6:12 0:8", "6:12 0:8", "0:8 6:12",
                          "0:8", "6:12 0:8", "6:12", "0:8 6:12", "0:8", "5:10 0:8"));
}

TEST(HuggingFaceNames, RefusesWhatItCannotCut) {
  const auto fault = [](const std::string& name, Shape shape, std::int64_t ways) {
    const auto target =
        target_by_parameters(source_of({{name, std::move(shape)}}), placed(ways, 1));
    return message_of(target, "none");
  };
  EXPECT_EQ(fault("h.0.attn.c_attn.weight", {8, 16}, 1), "none");
  EXPECT_THAT(fault("h.0.attn.c_attn.weight", {8, 16}, 2),
              HasSubstr("'h.0.attn.c_attn.weight' holds several projections"));
  // Up alone, and with the gate before it (ChatGLM).
  const std::string up = "transformer.encoder.layers.0.mlp.dense_h_to_4h.weight";
  EXPECT_EQ(fault(up, {12, 8}, 2), "none");
  EXPECT_EQ(fault(up, {24, 8}, 1), "none");
  EXPECT_THAT(fault(up, {24, 8}, 2), HasSubstr("holds several projections"));
  EXPECT_EQ(fault("transformer.embedding.word_embeddings.weight", {9, 8}, 2), "none");
  EXPECT_EQ(fault("transformer.output_layer.weight", {9, 8}, 2), "none");
  EXPECT_EQ(fault("transformer.rotary_pos_emb.inv_freq", {1}, 2), "none");
  EXPECT_THAT(fault("model.layers.0.mlp.experts.weight", {8, 16}, 1),
              HasSubstr("is no parameter of the model"));
  EXPECT_THAT(fault("model.layers.2.self_attn.q_proj.weight", {8, 8}, 1),
              HasSubstr("is no parameter of the model"));
}

}  // namespace
}  // namespace foreshard::checkpoint
