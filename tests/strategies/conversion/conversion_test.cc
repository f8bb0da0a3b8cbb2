#include "strategies/conversion/conversion.h"

#include <rapidcheck.h>

#include "tests/strategies/graph/written_model.h"
#include "tests/test.h"

#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::conversion::conversion_test {

PlacedTensor matrix(Layout layout, const Shape& shape = {4, 4}) {
  return {.name = "w",
          .dtype = DType::kBf16,
          .shape = shape,
          .unpadded = shape,
          .layout = std::move(layout)};
}
Layout split(std::int64_t ways, std::size_t dim, std::int64_t replicas = 1) {
  Layout layout{.mesh = mesh_from({{"split", ways}, {"copy", replicas}}),
                .attribute = {.dims = {{}, {}}}};
  layout.attribute.dims[dim] = {0};
  return layout;
}

// By hand: a 4 x 4 matrix of 2-byte elements, by column over 2 devices (16 bytes each), to by row:
// each keeps its quarter of 8 bytes and sends one.
TEST(Conversion, TransposesAShard) {
  const auto plan = value_of(plan_conversion({{matrix(split(2, 1))}}, {{matrix(split(2, 0))}}));
  EXPECT_THAT(plan.transfers, ElementsAre(Transfer{0, 1, 8}, Transfer{1, 0, 8}));
  ASSERT_EQ(plan.devices.size(), 2U);
  EXPECT_EQ(plan.devices[0].before, 16);
  EXPECT_EQ(plan.devices[0].after, 16);
  EXPECT_EQ(plan.devices[0].stays, 8);
  EXPECT_EQ(plan.devices[0].peak(), 32);
  EXPECT_EQ(plan.messages, 2);
}

// By hand: 2 shards with 2 copies each (ranks 0, 2 and 1, 3) to 4 new devices, all columns each:
// every shard of 16 bytes is wanted 4 times, and its two holders send it twice each. With nodes
// {0, 1, 4, 5} and {2, 3, 6, 7} nothing crosses between nodes.
TEST(Conversion, ReplicasShareTheSending) {
  const Phase from{{matrix(split(2, 1, 2))}};
  const Phase to{{matrix(split(1, 1, 4))}, {4, 5, 6, 7}};
  const auto plan =
      value_of(plan_conversion(from, to, {.down = {}, .node_of_device = {0, 0, 1, 1, 0, 0, 1, 1}}));
  EXPECT_THAT(
      plan.transfers,
      ElementsAre(Transfer{0, 4, 16}, Transfer{0, 5, 16}, Transfer{1, 4, 16}, Transfer{1, 5, 16},
                  Transfer{2, 6, 16}, Transfer{2, 7, 16}, Transfer{3, 6, 16}, Transfer{3, 7, 16}));
  const auto without_nodes = plan_conversion(from, to);
  for (std::size_t device = 0; device < 4; ++device)
    EXPECT_EQ(without_nodes->devices[device].sent, 32);
}

TEST(Conversion, DevicesThatAreDownSendNothing) {
  const Phase from{{matrix(split(2, 1, 2))}};
  const Phase to{{matrix(split(2, 0))}, {0, 3}};
  const auto plan = value_of(plan_conversion(from, to, {.down = {1}}));
  EXPECT_TRUE(plan.lost.empty());
  EXPECT_THAT(plan.transfers, ElementsAre(Transfer{0, 3, 8}, Transfer{3, 0, 8}));

  const auto lossy = plan_conversion(from, to, {.down = {1, 3}});
  ASSERT_EQ(lossy->lost.size(), 1U);
  EXPECT_EQ(lossy->lost[0].tensor, "w");
  EXPECT_EQ(lossy->lost[0].box, (Box{{0, 2}, {4, 4}}));
}

TEST(Conversion, NamesWhatDoesNotMatch) {
  const auto message = [](const std::vector<PlacedTensor>& from,
                          const std::vector<PlacedTensor>& to) {
    return message_of(plan_conversion({from}, {to}));
  };
  PlacedTensor other = matrix(split(2, 1));
  other.dtype = DType::kFp16;
  EXPECT_THAT(message({matrix(split(2, 1))}, {other}),
              HasSubstr("is bf16 under the first strategy and fp16 under the second"));
  other = matrix(split(2, 1), {4, 6});
  EXPECT_THAT(message({matrix(split(2, 1))}, {other}), HasSubstr("[4,4]"));
  EXPECT_THAT(message({}, {other}), HasSubstr("does not exist under the first"));
}

Model small_model() {
  return written_model(
      "name: m, layers: 12, hidden: 48, heads: 12, vocabulary: 1000, sequence: 30");
}
Strategy strategy(std::int64_t tp, std::int64_t pp, std::int64_t dp, std::int64_t zero) {
  Strategy strategy;
  strategy.tensor_parallel = tp;
  strategy.pipeline_parallel = pp;
  strategy.data_parallel = dp;
  strategy.global_batch = 24;
  strategy.zero_stage = zero;
  return strategy;
}

// Parameters are those that lowering puts on the devices: the bytes agree with its memory.
TEST(Conversion, CountsTheBytesThatLoweringCounts) {
  for (const bool tied : {false, true}) {
    Model model = small_model();
    model.tied_embeddings = tied;
    for (const auto& s : {strategy(1, 1, 1, 0), strategy(4, 3, 2, 0), strategy(2, 4, 3, 0)}) {
      const auto program = value_of(lower::lower(model, s, {}));
      const auto plan =
          value_of(plan_conversion({parameters_of(model, s)}, {parameters_of(model, s)}));
      EXPECT_TRUE(plan.transfers.empty());
      ASSERT_EQ(static_cast<std::int64_t>(plan.devices.size()), s.devices());
      for (const auto& role : program.roles) {
        Bytes held{};
        for (const auto& memory : role.memory)
          if (memory.kind == program::MemoryKind::kParameters ||
              memory.kind == program::MemoryKind::kOptimizer)
            held += memory.bytes;
        for (const std::int32_t rank : role.ranks) {
          const DeviceTraffic& device = plan.devices[static_cast<std::size_t>(rank)];
          EXPECT_EQ(static_cast<double>(device.before), held.in_base());
          EXPECT_EQ(device.peak(), device.before);
        }
      }
    }
  }
}

TEST(Conversion, EverySliceIsCompleteAndNothingIsSentTwice) {
  EXPECT_TRUE(rc::check("new = kept + received + padding, and what is sent is received", [] {
    const Model model = small_model();
    const auto random = [] {
      static const std::vector<std::int64_t> kWays{1, 2, 3, 4, 6, 12};
      return strategy(*rc::gen::elementOf(kWays), *rc::gen::elementOf(kWays),
                      *rc::gen::inRange<std::int64_t>(1, 5), *rc::gen::inRange<std::int64_t>(0, 4));
    };
    const Strategy a = random();
    const Strategy b = random();
    const Phase from{parameters_of(model, a)};
    Phase to{parameters_of(model, b)};
    const std::int64_t shift = *rc::gen::inRange<std::int64_t>(0, 30);
    for (std::int64_t r = 0; r < b.devices(); ++r)
      to.device_of_rank.push_back(static_cast<std::int32_t>(r + shift));
    const auto plan = plan_conversion(from, to);
    RC_ASSERT(plan.has_value());
    RC_ASSERT(plan->lost.empty());
    std::map<std::int32_t, std::int64_t> padding;
    for (const PlacedTensor& tensor : to.tensors) {
      const auto element = static_cast<std::int64_t>(size_of(tensor.dtype).in_base());
      for (std::int64_t p = 0; p < tensor.layout.mesh.size(); ++p) {
        const Box box = slice_of(tensor.layout, tensor.shape, p);
        const auto rank = tensor.layout.mesh.ranks[static_cast<std::size_t>(p)];
        padding[rank + static_cast<std::int32_t>(shift)] +=
            element * (box.elements() - intersection(box, whole_of(tensor.unpadded)).elements());
      }
    }
    std::int64_t sent = 0;
    std::int64_t received = 0;
    for (const DeviceTraffic& device : plan->devices) {
      RC_ASSERT(device.after == device.stays + device.received + padding[device.device]);
      sent += device.sent;
      received += device.received;
    }
    std::int64_t pairs = 0;
    for (const Transfer& transfer : plan->transfers) pairs += transfer.bytes;
    RC_ASSERT(sent == plan->bytes_moved);
    RC_ASSERT(received == plan->bytes_moved);
    RC_ASSERT(pairs == plan->bytes_moved);
    if (const auto program = program_of(*plan, "p")) RC_ASSERT(program::verify(*program).ok());
  }));
}

}  // namespace foreshard::conversion::conversion_test
