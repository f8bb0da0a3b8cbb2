// Linear layers in fp8 and fp4, by hand: what is cast and when, in which width ranks communicate,
// and what weights take.
#include "strategies/graph/quantization.h"

#include <variant>

#include "tests/strategies/graph/written_model.h"
#include "tests/strategies/lower/counts.h"
#include "tests/test.h"

#include "strategies/graph/operators/build.h"
#include "strategies/program/lower/graph.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower::quantization_test {

using program::CollectiveKind;
using program::MemoryKind;
using program::Program;

Model gpt(std::int64_t layers = 4) {
  return written_model(
      "name: tiny GPT, layers: " + std::to_string(layers) +
      ", hidden: 8, heads: 4, vocabulary: 12, sequence: 4, tied_embeddings: false");
}
constexpr double kTokens = 8;                               // of a micro-batch
constexpr double kWeights = 8 * 24 + 8 * 8 + 2 * (8 * 32);  // of a layer

Strategy strategy(Quantization recipe, std::int64_t tp, std::int64_t dp) {
  Strategy s = degrees(tp, 1, dp, 2, 3);
  s.quantization = recipe;
  return s;
}

Program lowered(const Model& model, const Strategy& of) {
  return value_of(lower(model, of, {}));
}

struct Work {
  int kernels = 0;
  double elements = 0;
  bool operator==(const Work&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Work& work) {
  return out << work.kernels << " kernels over " << work.elements << " elements";
}

// The passes of `kind` in blocks whose name has `part` in it.
Work passes(const Program& program, PassKind kind, std::string_view part) {
  Work sum;
  visit_tasks(program, [&](const program::Block& block, const program::Task& task) {
    const auto* kernel = std::get_if<Kernel>(&task.body);
    const Pass* pass = kernel == nullptr ? nullptr : std::get_if<Pass>(kernel);
    if (pass == nullptr || pass->kind != kind || block.name.find(part) == std::string::npos) return;
    ++sum.kernels;
    sum.elements += static_cast<double>(pass->rows * pass->columns);
  });
  return sum;
}

std::map<DType, int> products(const Program& program) {
  std::map<DType, int> counts;
  visit_tasks(program, [&](const program::Task& task) {
    const auto* kernel = std::get_if<Kernel>(&task.body);
    const Gemm* gemm = kernel == nullptr ? nullptr : std::get_if<Gemm>(kernel);
    if (gemm != nullptr) ++counts[gemm->dtype];
  });
  return counts;
}

double bytes(const Program& program, CollectiveKind kind, program::Purpose purpose) {
  double sum = 0;
  visit_tasks(program, [&](const program::Task& task) {
    const auto* what = std::get_if<program::Communication>(&task.body);
    if (what != nullptr && what->kind == kind && what->purpose == purpose)
      sum += what->bytes.in_base();
  });
  return sum;
}

// Four layers, three micro-batches. Forward the inputs of the four products, 8 + 8 + 8 + 32 wide;
// backward the gradients of their results, 24 + 8 + 32 + 8 wide; weights once a step.
TEST(Quantization, CastsWhatProductsRead) {
  const Program program = lowered(gpt(), strategy(Quantization::kFp8Delayed, 1, 1));
  constexpr PassKind kCast = PassKind::kQuantizeTranspose;
  EXPECT_EQ(passes(program, kCast, "layer.forward"), (Work{4 * 3 * 4, 4 * 3 * kTokens * 56}));
  EXPECT_EQ(passes(program, kCast, "layer.backward"), (Work{4 * 3 * 4, 4 * 3 * kTokens * 72}));
  EXPECT_EQ(passes(program, kCast, "optimizer"), (Work{1, 4 * kWeights}));
  EXPECT_EQ(passes(program, kCast, ""),
            (Work{2 * 4 * 3 * 4 + 1, 4 * (3 * kTokens * 128 + kWeights)}));
  // The output projection stays in bf16, three products a micro-batch.
  EXPECT_EQ(products(program),
            (std::map<DType, int>{{DType::kBf16, 3 * 3}, {DType::kFp8, 4 * 3 * 12}}));
}

// Of four layers the first and the last compute in bf16: no casts of theirs, no copies of weights,
// inputs kept in bf16.
TEST(Quantization, LeavesLayersAtTheEndsAlone) {
  Strategy s = strategy(Quantization::kMxFp8, 1, 1);
  s.unquantized_layers = {1, 1};
  const Program program = lowered(gpt(), s);
  constexpr PassKind kCast = PassKind::kQuantizeTwice;
  EXPECT_EQ(passes(program, kCast, "layer.forward"), (Work{2 * 3 * 4, 2 * 3 * kTokens * 56}));
  EXPECT_EQ(passes(program, kCast, "unquantized_layer"), Work{});
  EXPECT_EQ(passes(program, kCast, "optimizer"), (Work{1, 2 * kWeights}));
  EXPECT_EQ(products(program),
            (std::map<DType, int>{{DType::kBf16, 3 * 3 + 2 * 3 * 12}, {DType::kFp8, 2 * 3 * 12}}));
  const Program plain = lowered(gpt(), strategy(Quantization::kNone, 1, 1));
  EXPECT_EQ(held(program, MemoryKind::kParameters) - held(plain, MemoryKind::kParameters),
            2 * 2 * kWeights);
  const auto blocks = lower_blocks(gpt(), s);
  ASSERT_EQ(blocks->layers.size(), 2U);
  EXPECT_EQ(blocks->layers.front().saved,
            lower_blocks(gpt(), strategy(Quantization::kNone, 1, 1))->layers.front().saved);
  EXPECT_LT(blocks->layers.back().saved, blocks->layers.front().saved);
}

// Bytes an element, read and written: from the table in quantization.h.
TEST(Quantization, MovesWhatItsRecipeSays) {
  const auto moved = [](Quantization recipe, bool both = true) {
    Bytes sum;
    for (const Pass& pass : quantize_kernels(recipe, 10, 100, DType::kBf16, both))
      sum += bytes_of(Kernel(pass));
    return sum / 1000_B;
  };
  EXPECT_EQ(moved(Quantization::kFp8Delayed), 4);
  const double scale = 3 * 4 / 1000.0;  // the maximum set to 0, read; the scale written; in fp32
  EXPECT_DOUBLE_EQ(moved(Quantization::kFp8Current), 6 + scale);
  EXPECT_EQ(moved(Quantization::kFp8Block), 6);
  EXPECT_EQ(moved(Quantization::kFp8Rowwise), 8);
  EXPECT_EQ(moved(Quantization::kMxFp8), 4);
  EXPECT_EQ(moved(Quantization::kNvFp4), 7);
  EXPECT_EQ(moved(Quantization::kNvFp4Unrotated), 5);
  // One copy: 2 read, 1 written.
  EXPECT_EQ(moved(Quantization::kFp8Delayed, false), 3);
  EXPECT_DOUBLE_EQ(moved(Quantization::kFp8Current, false), 5 + scale);
  EXPECT_EQ(moved(Quantization::kFp8Block, false), 3);
  EXPECT_EQ(moved(Quantization::kFp8Rowwise, false), 3);
  EXPECT_EQ(moved(Quantization::kMxFp8, false), 3);
  EXPECT_EQ(moved(Quantization::kNvFp4, false), 4.5);
  EXPECT_EQ(moved(Quantization::kNvFp4Unrotated, false), 4.5);
}

// Rows of four experts: as many kernels of each kind, over the same rows in all.
TEST(Quantization, LaunchesKernelsForEachExpert) {
  const auto whole = quantize_kernels(Quantization::kFp8Current, 80, 100, DType::kBf16);
  const auto apart = quantize_kernels(Quantization::kFp8Current, 80, 100, DType::kBf16, true, 4);
  ASSERT_EQ(whole.size(), 4U);  // 0, maximum, scale, copies
  ASSERT_EQ(apart.size(), 4U);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(whole[i].launches, 1);
    EXPECT_EQ(apart[i].launches, 4);
    EXPECT_EQ(apart[i].kind, whole[i].kind);
  }
  EXPECT_EQ(apart[1].rows, 80);
  EXPECT_EQ(apart[2].rows, 4);
}

// Activations and gradients are gathered after they are cast: half the bytes of a layer. With
// scales of columns they are gathered before, in 16 bits, and what is cast of the two inputs is
// kept whole, where it is gathered again for the gradients of weights without: four gathers of six.
TEST(Quantization, GathersAlongTheSequenceInFp8) {
  const auto gathered = [](Quantization recipe, std::int64_t layers) {
    Strategy s = strategy(recipe, 2, 1);
    s.sequence_parallel = true;
    return bytes(lowered(gpt(layers), s), CollectiveKind::kAllGather, program::Purpose::kTensor);
  };
  const auto layer = [&](Quantization recipe) { return gathered(recipe, 5) - gathered(recipe, 4); };
  EXPECT_GT(layer(Quantization::kNone), 0);
  EXPECT_EQ(layer(Quantization::kFp8Current), layer(Quantization::kNone) / 2);
  EXPECT_EQ(layer(Quantization::kNvFp4), layer(Quantization::kNone) / 4);
  EXPECT_EQ(layer(Quantization::kFp8Rowwise), layer(Quantization::kNone) * 4 / 6);
}

// Maxima of columns over ranks that have parts of a sequence are nobody's: torchtitan's ranks each
// scale what they have, which is not modelled.
TEST(Quantization, RefusesScalesOfColumnsBesideContextParallelism) {
  const auto is_refused = [](Quantization recipe) {
    Strategy s = strategy(recipe, 1, 1);
    s.context_parallel = 2;
    const auto faults = faults_in(s, gpt(), s.devices());
    return std::any_of(faults.begin(), faults.end(),
                       [](const StrategyFault& fault) { return fault.key == "quantization"; });
  };
  EXPECT_TRUE(is_refused(Quantization::kFp8Rowwise));
  EXPECT_FALSE(is_refused(Quantization::kFp8Current));
}

// What is kept of a product's input for its weight's gradient is its copy of one byte an element.
TEST(Quantization, KeepsInputsInFp8) {
  const auto saved = [](Quantization recipe) {
    return lower_blocks(gpt(), strategy(recipe, 1, 1))->layers.front().saved.in_base();
  };
  // The normalised inputs and the context of attention, which attention keeps in bf16 all the same;
  // the activated one of 32.
  const double normed = 2 * kTokens * 8;
  EXPECT_EQ(saved(Quantization::kFp8Current),
            saved(Quantization::kNone) - normed - kTokens * 32 + kTokens * 8);
}

// In bf16 alone 2 bytes an element; with two copies 4; those alone, 2. Gathered after the step by
// the ranks that share the optimizer: 2 bytes, or of one copy 1.
TEST(Quantization, HoldsAndGathersWeightsAsItIsTold) {
  Strategy s = strategy(Quantization::kNone, 1, 2);
  s.zero_stage = 1;
  const Program plain = lowered(gpt(), s);
  const auto parameters = [](const Program& program) {
    return held(program, MemoryKind::kParameters);
  };
  const auto gathered = [](const Program& program) {
    return bytes(program, CollectiveKind::kAllGather, program::Purpose::kData);
  };
  s.quantization = Quantization::kFp8Current;
  const Program copied = lowered(gpt(), s);
  EXPECT_EQ(parameters(copied) - parameters(plain), 4 * 2 * kWeights);
  EXPECT_EQ(gathered(copied), gathered(plain));
  s.quantized_parameters = true;
  const Program alone = lowered(gpt(), s);
  EXPECT_EQ(parameters(alone), parameters(plain));
  EXPECT_EQ(gathered(plain) - gathered(alone), 4 * kWeights);
  // Each rank casts what it updates.
  const auto cast = [](const Program& program) {
    return passes(program, PassKind::kQuantizeTranspose, "optimizer").elements;
  };
  EXPECT_EQ(cast(copied), 4 * kWeights);
  EXPECT_EQ(cast(alone), 4 * kWeights / 2);
  s.quantization = Quantization::kMxFp8;  // neither copy follows from the other
  EXPECT_EQ(gathered(lowered(gpt(), s)), gathered(plain));
  s.quantization = Quantization::kNvFp4;  // likewise, of half a byte each
  EXPECT_EQ(gathered(plain) - gathered(lowered(gpt(), s)), 4 * kWeights);
  EXPECT_EQ(parameters(plain) - parameters(lowered(gpt(), s)), 4 * kWeights);
  // Weights are not rotated: one pass makes both copies.
  EXPECT_EQ(passes(lowered(gpt(), s), PassKind::kQuantizeFp4Twice, "optimizer").elements,
            4 * kWeights / 2);
}

// With one scale a tensor, where matrix units read it either way, one copy; with scales of blocks
// two.
TEST(Quantization, HoldsOneCopyWhereItIsReadEitherWay) {
  const auto copies = [](Quantization recipe) {
    Strategy s = strategy(recipe, 1, 1);
    s.one_copy_in_fp8 = true;
    return (held(lowered(gpt(), s), MemoryKind::kParameters) -
            held(lowered(gpt(), strategy(Quantization::kNone, 1, 1)), MemoryKind::kParameters)) /
           (4 * kWeights);
  };
  EXPECT_EQ(copies(Quantization::kFp8Delayed), 1);
  EXPECT_EQ(copies(Quantization::kFp8Current), 1);
  EXPECT_EQ(copies(Quantization::kFp8Block), 2);
  EXPECT_EQ(copies(Quantization::kMxFp8), 2);
  EXPECT_EQ(copies(Quantization::kFp8Rowwise), 2);
}

// Gate and up projection are 2 x 32 wide: a byte an element less is kept of each token, for a cast
// in either pass of each of four layers and three micro-batches.
TEST(Quantization, KeepsWhatActivationsReadInFp8) {
  Model model = gpt();
  model.activation = Activation::kSwiglu;
  model.bias = false;
  Strategy s = strategy(Quantization::kFp8Delayed, 1, 1);
  const auto saved = [&] { return lower_blocks(model, s)->layers.front().saved.in_base(); };
  const double wide = saved();
  EXPECT_EQ(passes(lowered(model, s), PassKind::kQuantize, ""), Work{});
  s.framework.value.fp8_activation_inputs = true;
  EXPECT_EQ(wide - saved(), kTokens * 64);
  const Work casts{4 * 3, 4 * 3 * kTokens * 64};
  EXPECT_EQ(passes(lowered(model, s), PassKind::kQuantize, "layer.forward"), casts);
  EXPECT_EQ(passes(lowered(model, s), PassKind::kQuantize, "layer.backward"), casts);
  s.quantization = Quantization::kNone;
  EXPECT_EQ(passes(lowered(model, s), PassKind::kQuantize, ""), Work{});
}

// Queries, keys and values, 24 wide, are kept in one byte an element, and the result, 8 wide, which
// is cast back for the product that reads it.
TEST(Quantization, AttendsInFp8) {
  Strategy s = strategy(Quantization::kFp8Delayed, 1, 1);
  const auto saved = [&] { return lower_blocks(gpt(), s)->layers.front().saved.in_base(); };
  const auto narrow = [&] {
    int count = 0;
    visit_tasks(lowered(gpt(), s), [&](const program::Task& task) {
      const auto* kernel = std::get_if<Kernel>(&task.body);
      const auto* attention = kernel == nullptr ? nullptr : std::get_if<Attention>(kernel);
      if (attention != nullptr && attention->dtype == DType::kFp8) ++count;
    });
    return count;
  };
  const double wide = saved();
  EXPECT_EQ(narrow(), 0);
  s.framework.value.fp8_attention = true;
  EXPECT_EQ(wide - saved(), kTokens * (24 + 8));
  EXPECT_EQ(narrow(), 2 * 4 * 3);
  EXPECT_EQ(passes(lowered(gpt(), s), PassKind::kQuantize, "layer.forward"),
            (Work{2 * 4 * 3, 4 * 3 * kTokens * (24 + 8)}));
}

// ZeRO 3 casts what it gathered, twice a micro-batch; where shards are quantized, they are cast
// once.
TEST(Quantization, CastsShardsOrWhatIsGathered) {
  Strategy s = strategy(Quantization::kFp8Delayed, 1, 2);
  s.zero_stage = 3;
  constexpr PassKind kCast = PassKind::kQuantizeTranspose;
  const Program whole = lowered(gpt(), s);
  EXPECT_EQ(passes(whole, kCast, "gather"), (Work{4 * 3 * 2, 4 * 3 * 2 * kWeights}));
  EXPECT_EQ(passes(whole, kCast, "optimizer"), Work{});
  s.quantized_parameters = true;
  const Program shards = lowered(gpt(), s);
  EXPECT_EQ(passes(shards, kCast, "gather"), Work{});
  EXPECT_EQ(passes(shards, kCast, "optimizer"), (Work{1, 4 * kWeights / 2}));
  s.framework.value.shards.fp32 = true;  // there is no other copy: shards are cast for each gather
  const Program fp32 = lowered(gpt(), s);
  EXPECT_EQ(passes(fp32, kCast, "gather"), (Work{4 * 3 * 2, 4 * 3 * 2 * kWeights / 2}));
  EXPECT_EQ(passes(fp32, kCast, "optimizer"), Work{});
}

// A tensor in fp8 that products, a cast and a pointwise operator read: its gradients are of three
// kinds, and are added up in 16 bits.
TEST(Quantization, GradientsOfUnlikeTypesMeet) {
  Graph graph{.name = "mixed"};
  const TensorId x = add_input(graph, "x", {DType::kBf16, {16, 32}});
  const TensorId w = add_parameter(graph, "w", {DType::kBf16, {32, 32}});
  const auto add = [&](OperatorSpec spec) { return *add_single(graph, std::move(spec)); };
  const auto product = [&](const char* name, TensorId in, const char* to) {
    return add(
        {.type = "matmul", .name = name, .inputs = {in, w}, .settings = {{"to", std::string(to)}}});
  };
  const TensorId z = product("z", x, "bf16");
  const TensorId q = add({.type = "quantize", .name = "q", .inputs = {z}});
  const TensorId pointwise = add({.type = "unary",
                                  .name = "pointwise",
                                  .inputs = {q},
                                  .settings = {{"operation", std::string("gelu")}}});
  const TensorId wide = add(
      {.type = "cast", .name = "wide", .inputs = {q}, .settings = {{"to", std::string("fp32")}}});
  const auto sum = [&](const char* name, TensorId a, TensorId b) {
    return add({.type = "binary",
                .name = name,
                .inputs = {a, b},
                .settings = {{"operation", std::string("add")}}});
  };
  const TensorId y = sum("y", product("p", q, "fp32"), product("r", pointwise, "fp32"));
  graph.outputs = {add({.type = "reduce",
                        .name = "loss",
                        .inputs = {sum("all", y, wide)},
                        .settings = {{"operation", std::string("mean")}}})};
  Strategy s = strategy(Quantization::kNone, 1, 1);
  s.micro_batch = 1;
  s.global_batch = 1;
  const auto lowered = value_of(lower_graph(graph, s, {}));
  // Forward two, and the gradients of the weight from both.
  EXPECT_EQ(products(lowered.program)[DType::kFp8], 4);
}

// Each matrix by itself, in the width in which it is held.
TEST(Quantization, GathersEachWeightAsItIsHeld) {
  Strategy s = strategy(Quantization::kFp8Current, 1, 2);
  s.zero_stage = 3;
  s.framework.value.shards.gather_each = 60;  // the four matrices of a layer; the embedding
  const auto gathered = [&] {
    return bytes(lowered(gpt(5), s), CollectiveKind::kAllGather, program::Purpose::kData) -
           bytes(lowered(gpt(4), s), CollectiveKind::kAllGather, program::Purpose::kData);
  };
  const double plain = gathered();
  EXPECT_EQ(plain, 3 * 2 * 2 * kWeights);
  s.quantized_parameters = true;
  EXPECT_EQ(gathered(), plain / 2);
}

}  // namespace foreshard::lower::quantization_test
