// Encoders, alone and before a decoder, by their hyper-parameters.

#include "tests/strategies/execute/tiny_encoders.h"
#include "tests/test.h"

#include "strategies/graph/transformer.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/block.h"

namespace foreshard::encoder_models_test {

Model shipped(const std::string& name) {
  return value_of(yaml::Loader(shipped_options())
                      .read_file<Model>(FORESHARD_SOURCE_DIR "/configs/models/" + name + ".yaml"));
}

// BERT-Base by hand, h = 768: a layer has 12 h^2 + 13 h = 7,087,872; before the layers tables of
// 30,522 words, 512 positions and 2 types and a norm, (30,522 + 512 + 2 + 2) h = 23,837,184; the
// pooler h^2 + h = 590,592. The heads of the pretraining: product and norm h^2 + 3 h, a bias of the
// words, and 2 (h + 1) of the two classes: 624,188. 110,106,428 is the sum over google-bert/
// bert-base-uncased's model.safetensors (as its page and huggingface.js's test of
// parseSafetensorsMetadata have it).
TEST(EncoderParameters, OfBertByHand) {
  Model bert = shipped("bert-base");
  EXPECT_EQ(parameter_count(bert), 110'106'428);
  bert.head = Head::kNone;
  bert.head_bias = false;
  bert.classes = 0;
  EXPECT_EQ(parameter_count(bert), 109'482'240);
  EXPECT_EQ(12 * 7'087'872 + 23'837'184 + 590'592, 109'482'240);
}

// ViT-Base/16 by hand: squares of 16 x 16 x 3 = h values make (h + 1) h, the class token h, 197
// positions h each, 12 layers, a norm 2 h, 1,000 (h + 1) for the classes. 86,567,656 is what
// pytorch/vision, torchvision/models/vision_transformer.py states (ViT_B_16_Weights, num_params).
TEST(EncoderParameters, OfViTByHand) {
  EXPECT_EQ(parameter_count(shipped("vit-base")), 86'567'656);
  EXPECT_EQ(769 * 768 + 768 + 197 * 768 + 12 * 7'087'872 + 2 * 768 + 1'000 * 769, 86'567'656);
}

// T5-Base by hand: a table of 32,128 h; per layer of the encoder 4 h^2 + 8 h^2 + 2 h, of the
// decoder 4 h^2 more and h; a norm h behind either, and 32 x 12 numbers for relative positions in
// either. 222,903,552 is what keras-hub states (t5_presets.py, t5_base).
TEST(EncoderParameters, OfT5ByHand) {
  constexpr std::int64_t kH = 768;
  EXPECT_EQ(parameter_count(shipped("t5-base")), 222'903'552);
  EXPECT_EQ(32'128 * kH + 12 * (12 * kH * kH + 2 * kH) + 12 * (16 * kH * kH + 3 * kH) + 2 * kH +
                2 * 32 * 12,
            222'903'552);
}

// Whisper large-v3 by hand, h = 1,280: attention 4 h^2 + 3 h (keys have no bias), a feed-forward
// layer 8 h^2 + 5 h, norms 2 h each; convolutions 3 x 128 h + h and 3 h^2 + h; positions 1,500 h
// (of sines, not trained) and 448 h; a norm behind either; a table of 51,866 words.
// 1,543,490,560 is the sum over openai/whisper-large-v3's model.safetensors.
TEST(EncoderParameters, OfWhisperByHand) {
  constexpr std::int64_t kH = 1280;
  constexpr std::int64_t kEncoder = 12 * kH * kH + 12 * kH;
  constexpr std::int64_t kDecoder = kEncoder + 4 * kH * kH + 5 * kH;
  const Model whisper = shipped("whisper-large-v3");
  EXPECT_EQ(parameter_count(whisper), 1'543'490'560);
  EXPECT_EQ(32 * (kEncoder + kDecoder) + (3 * 128 + 1) * kH + 3 * kH * kH + kH +
                (1'500 + 448) * kH + 4 * kH + 51'866 * kH,
            1'543'490'560);
  EXPECT_EQ(parameter_count(whisper) - trained_parameter_count(whisper), 1'500 * kH);
}

// What the graphs hold is what is counted.
TEST(EncoderParameters, AreThoseOfTheGraphs) {
  for (const Model& model : tiny_encoders()) {
    std::int64_t sum = 0;
    const auto add = [&](const Graph& graph) {
      for (const Tensor& tensor : graph.tensors)
        if (tensor.role == TensorRole::kParameter &&
            !(tensor.name == "logits.weight" && model.ties_head()))
          sum += elements(tensor);
    };
    const TransformerGraphs graphs = graphs_of(model, tiny_strategy(1, 1, 1));
    add(graphs.embedding);
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
      add(graphs.layers[model.kind_index(layer)]);
    add(graphs.head);
    EXPECT_EQ(sum, parameter_count(model)) << model.name;
  }
}

// Forward of one sample, 2 per multiplication. The image: 9 squares of 12 values to h = 16; 4
// layers of 12 h^2 per token and 2 s^2 h of scores and values with s = 10; one token to 5 classes.
TEST(EncoderFlops, OfATinyViTByHand) {
  const double layers = 4.0 * (10 * 12 * 256 + 2 * 100 * 16);
  EXPECT_EQ(forward_flops(tiny_vit(), 1), 2 * (9.0 * 12 * 16 + layers + 16 * 5) * 1_FLOP);
}

// No gradient of the pixels is computed: of the embedding's product the backward pass has the
// gradient of its weights alone, and a step counts it twice, all others three times.
TEST(EncoderFlops, OfATinyViTLeaveOutTheGradientOfPixels) {
  const Flops pixels = 2 * 9.0 * 12 * 16 * 1_FLOP;
  EXPECT_EQ(model_flops(tiny_vit(), 1), 3 * forward_flops(tiny_vit(), 1) - pixels);
  const auto blocks = value_of(lower::lower_blocks(tiny_vit(), tiny_strategy(1, 1, 1)));
  Flops products;
  for (const program::Task& task : lower::only_block(blocks.embedding.backward).tasks)
    if (const auto* kernel = std::get_if<Kernel>(&task.body);
        kernel != nullptr && std::holds_alternative<Gemm>(*kernel))
      products += flops_of(*kernel);
  EXPECT_EQ(products, pixels);
}

// h = 16, 4 heads of 3: projections are h x 12. Two layers of the encoder over 8 tokens, three of
// the decoder over 4, which make keys and values of the encoder's 8: 2 x 8 x h x 12 of them, and
// 2 x 4 x h x 12 for queries and results.
TEST(EncoderFlops, OfATinyT5ByHand) {
  const double ffn = 2 * 16 * 24;
  const double attention = 4 * 16 * 12;
  const double encoder = 2 * (8 * (attention + ffn) + 2 * 8 * 8 * 12);
  const double crossing = 2 * 8 * 16 * 12 + 2 * 4 * 16 * 12 + 2 * 4 * 8 * 12;
  const double decoder = 3 * (4 * (attention + ffn) + 2 * 4 * 4 * 12 + crossing);
  EXPECT_EQ(forward_flops(tiny_t5(true), 1), 2 * (encoder + decoder + 4.0 * 16 * 21) * 1_FLOP);
}

// The states of the encoder, 8 tokens of 16 numbers in bf16, are held by the first layer of the
// decoder alone, also where layers keep nothing but what they are given: there the decoder's stream
// is 4 tokens.
TEST(EncoderMemory, StatesAreHeldOnce) {
  for (const Recompute how : {Recompute::kNone, Recompute::kFull}) {
    Strategy s = tiny_strategy(1, 1, 1);
    s.recompute = how;
    const auto blocks = value_of(lower::lower_blocks(tiny_t5(true), s));
    ASSERT_EQ(blocks.layers.size(), 4U);  // two of the encoder, the decoder's first, the others
    EXPECT_EQ(blocks.layers[2].saved - blocks.layers[3].saved, 8 * 16 * 2_B);
    if (how == Recompute::kNone) continue;
    EXPECT_EQ(blocks.layers[3].saved, 4 * 16 * 2_B);
    EXPECT_EQ(blocks.layers[0].saved, 8 * 16 * 2_B);
  }
}

TEST(EncoderModels, KindsOfLayers) {
  const Model t5 = tiny_t5(true);
  std::vector<std::string> names;
  for (std::int64_t layer = 0; layer < t5.layers; ++layer)
    names.push_back(name_of(t5.kind_of_layer(layer)));
  EXPECT_THAT(names, ElementsAre("first_encoder_layer", "last_encoder_layer", "first_layer",
                                 "layer", "layer"));
}

TEST(EncoderModels, AreSound) {
  for (const Model& model : tiny_encoders()) EXPECT_EQ(message_of(checked(model)), "accepted");
}

TEST(EncoderModels, StrategiesThatTheyRefuse) {
  const auto only = [](const Model& model, const Strategy& s) {
    const auto faults = faults_in(s, model, s.devices());
    return faults.size() == 1 ? faults[0].message + "; " + faults[0].help : "not one fault";
  };
  Strategy s = tiny_strategy(1, 2, 1);
  s.layers_per_stage = {2, 3};
  EXPECT_THAT(only(tiny_t5(true), s),
              HasSubstr("a pipeline over encoder and decoder is not modelled"));
  s = tiny_strategy(2, 1, 1);
  s.sequence_parallel = true;
  Model odd = tiny_t5(true);
  odd.encoder->sequence = 7;
  EXPECT_THAT(only(odd, s), HasSubstr("the encoder's sequence of 7 tokens cannot be split 2 ways"));
  s = tiny_strategy(1, 1, 1);
  s.framework.value.attention = AttentionImplementation::kUnfused;
  EXPECT_THAT(only(tiny_t5(true), s), HasSubstr("attention to an encoder without a fused kernel"));
  s = tiny_strategy(1, 1, 1);
  s.context_parallel = 2;
  EXPECT_THAT(only(tiny_bert(), s), HasSubstr("for what is read of the first token; set context"));
  s.context_exchange = ContextExchange::kRing;
  Model masked = tiny_bert();
  masked.pooler = false;
  masked.classes = 0;
  EXPECT_THAT(only(masked, s), HasSubstr("attention without a causal mask"));
}

}  // namespace foreshard::encoder_models_test
