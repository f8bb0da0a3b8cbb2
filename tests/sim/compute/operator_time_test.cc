#include "sim/compute/operator_time.h"

#include "tests/sim/compute/attention.h"
#include "tests/sim/compute/toy_device.h"
#include "tests/test.h"

namespace foreshard {
namespace {

using test::toy_device;

double us(Seconds time) {
  return time / 1_us;
}
OperatorTime burst(const Kernel& kernel, const DeviceType& device) {
  return time_of(kernel, device, Duty::kBurst);
}

// One tile: 2 * 100 * 100 * 1000 = 20 MFLOP at 10 TFLOP/s = 2 us, plus 1 us of its own. Bytes:
// 2 * (100*1000 + 1000*100 + 100*100) = 420 kB at 1 TB/s = 0.42 us. Floor: 2 us.
TEST(GemmTime, OfOneTile) {
  const OperatorTime time = burst(Gemm{.m = 100, .n = 100, .k = 1000}, toy_device());
  EXPECT_DOUBLE_EQ(us(time.compute), 3.0);
  EXPECT_DOUBLE_EQ(us(time.memory), 0.42);
  EXPECT_DOUBLE_EQ(us(time.total()), 5.0);
  EXPECT_EQ(time.bound(), Bound::kCompute);
  EXPECT_EQ(time.units, 1);
  EXPECT_EQ(time.waves, 1);
}

// At half the clocks the arithmetic takes 4 us instead of 2; overheads stay.
TEST(GemmTime, SustainedClocksSlowTheArithmeticOnly) {
  const OperatorTime time = time_of(Gemm{.m = 100, .n = 100, .k = 1000}, toy_device());
  EXPECT_DOUBLE_EQ(us(time.compute), 5.0);
  EXPECT_DOUBLE_EQ(us(time.memory), 0.42);
}

// fp8 at twice the rate and a quarter of the clocks: 4 us.
TEST(GemmTime, SustainedClocksAreThoseOfTheDtype) {
  DeviceType device = toy_device();
  device.tensor_peak["fp8"].value = 200_TFLOP_s;
  device.efficiency.value.gemm.sustained_of["fp8"] = 0.25;
  const auto compute = [&](DType dtype, Duty duty) {
    return us(time_of(Gemm{.m = 100, .n = 100, .k = 1000, .dtype = dtype}, device, duty).compute);
  };
  EXPECT_DOUBLE_EQ(compute(DType::kFp8, Duty::kSustained), 1.0 + 4.0);
  EXPECT_DOUBLE_EQ(compute(DType::kFp8, Duty::kBurst), 1.0 + 1.0);
  EXPECT_DOUBLE_EQ(compute(DType::kBf16, Duty::kSustained), 1.0 + 4.0);
}

// Measured on a device with a fifth of the multiprocessors, half of the peak and the same power: a
// multiprocessor here has 0.4 of the peak of one there, so 400 kB of operands at 0.4 x 100 GB/s
// take 10 us. With half the power for each operation the clocks are 0.5 / 2^(1/3); with eight
// times, 1.
TEST(GemmTime, OfNumbersThatAnotherDeviceHas) {
  DeviceType device = toy_device();
  const Gemm gemm{.m = 100, .n = 100, .k = 1000};
  device.power = yaml::Sourced<Watts>{100_W, "test", yaml::Evidence::kUser};
  device.efficiency.value.gemm.measured_at =
      MeasuredAt{.power = 100_W, .peak = 50_TFLOP_s, .multiprocessors = 2};
  EXPECT_DOUBLE_EQ(us(time_of(gemm, device).compute), 1.0 + 2.0 / (0.5 / std::cbrt(2.0)));
  EXPECT_DOUBLE_EQ(us(burst(gemm, device).compute), 3.0);

  device.power->value = 1600_W;
  EXPECT_DOUBLE_EQ(us(time_of(gemm, device).compute), 3.0);
  device.power.reset();
  EXPECT_DOUBLE_EQ(us(time_of(gemm, device).compute), 5.0);

  device.efficiency.value.gemm.operand_rate = 100_GB_s;
  EXPECT_DOUBLE_EQ(us(burst(gemm, device).compute), 11.0);
}

// 10 tiles on 10 multiprocessors take as long as one; the 11th costs a second wave of 3 us.
TEST(GemmTime, OneTileMoreThanAWaveCostsASecondWave) {
  const OperatorTime full = burst(Gemm{.m = 1000, .n = 100, .k = 1000}, toy_device());
  EXPECT_EQ(full.waves, 1);
  EXPECT_DOUBLE_EQ(us(full.compute), 3.0);
  const OperatorTime over = burst(Gemm{.m = 1001, .n = 100, .k = 1000}, toy_device());
  EXPECT_EQ(over.units, 11);
  EXPECT_EQ(over.waves, 2);
  EXPECT_DOUBLE_EQ(us(over.compute), 6.0);
}

// Batches of one tile each. Together 8 take one wave of 10 multiprocessors: 3 us, and one floor of
// 2 us. Launched apart, four at a time, they take that twice; one at a time, eight times.
TEST(GemmTime, OfProductsLaunchedApart) {
  DeviceType device = toy_device();
  device.memory_bandwidth.value = 10_TB_s;
  Gemm experts{.batch = 8, .m = 100, .n = 100, .k = 1000};
  EXPECT_DOUBLE_EQ(us(burst(experts, device).total()), 5.0);
  experts.apart = true;
  EXPECT_DOUBLE_EQ(us(burst(experts, device).total()), 10.0);
  EXPECT_EQ(burst(experts, device).units, 8);
  EXPECT_EQ(burst(experts, device).waves, 2);
  device.efficiency.value.gemm.side_by_side = 1;
  EXPECT_DOUBLE_EQ(us(burst(experts, device).total()), 40.0);
  experts.batch = 3;
  device.efficiency.value.gemm.side_by_side = 4;
  EXPECT_DOUBLE_EQ(us(burst(experts, device).total()), 5.0);
}

// 2 * (100*100 + 100*100 + 100*100) = 60 kB at 1 GB/s = 60 us, far above 1.2 us of arithmetic.
TEST(GemmTime, WithoutArithmeticIsBytesOverBandwidth) {
  DeviceType device = toy_device();
  device.memory_bandwidth.value = 1_GB_s;
  const OperatorTime time = burst(Gemm{.m = 100, .n = 100, .k = 100}, device);
  EXPECT_EQ(time.bound(), Bound::kMemory);
  EXPECT_DOUBLE_EQ(us(time.total()), 62.0);
}

// A tile of 100 x 100 takes in 200 * 1000 elements of 2 B: 0.4 MB at 100 GB/s = 4 us, above the 2
// us of its arithmetic. With one row there is less to take in: 101 * 1000 * 2 B = 2.02 us.
TEST(GemmTime, MayWaitForOperands) {
  DeviceType device = toy_device();
  device.efficiency.value.gemm.operand_rate = 100_GB_s;
  EXPECT_DOUBLE_EQ(us(burst(Gemm{.m = 100, .n = 100, .k = 1000}, device).compute), 5.0);
  EXPECT_DOUBLE_EQ(us(burst(Gemm{.m = 1, .n = 100, .k = 1000}, device).compute), 3.02);
}

// k = 10000 on one tile: 20 us. In two parts 10 us each, side by side, and 3 us to add them: 14 us.
// The parts are 2 * 2 * 100 * 100 * 4 B = 160 kB more, half of it through memory: 0.08 us.
TEST(GemmTime, SplitsKWhereMultiprocessorsIdle) {
  DeviceType device = toy_device();
  GemmEfficiency& gemm = device.efficiency.value.gemm;
  gemm.splits = {1, 2};
  gemm.split_overhead = 3_us;
  gemm.split_traffic = 0.5;
  const OperatorTime time = burst(Gemm{.m = 100, .n = 100, .k = 10000}, device);
  EXPECT_EQ(time.split, 2);
  EXPECT_DOUBLE_EQ(us(time.compute), 14.0);
  EXPECT_DOUBLE_EQ(us(time.memory), (2.0 * (1e6 + 1e6 + 1e4) / 1e12 + 0.08e-6) * 1e6);
  // A full wave gains nothing from a split.
  EXPECT_EQ(burst(Gemm{.m = 1000, .n = 100, .k = 10000}, device).split, 1);
  // Parts of 50 would be smaller than the smallest that is worth it.
  EXPECT_EQ(burst(Gemm{.m = 100, .n = 100, .k = 199}, device).split, 1);
  // Where scales change along k no kernel splits it.
  EXPECT_EQ(burst(Gemm{.m = 100, .n = 100, .k = 10000, .scales = Scales::kBlocks}, device).split,
            1);
}

// 400 x 100: four tiles of 100 x 100 (3 us) or one of 400 x 100 (9 us). 4000 x 100: 40 tiles in 4
// waves (12 us) or 10 large ones in 1 wave (9 us).
TEST(GemmTime, TakesTheBestTile) {
  DeviceType device = toy_device();
  device.efficiency.value.gemm.tiles = {{.m = 100, .n = 100}, {.m = 400, .n = 100}};
  EXPECT_EQ(burst(Gemm{.m = 400, .n = 100, .k = 1000}, device).tile.m, 100);
  EXPECT_EQ(burst(Gemm{.m = 4000, .n = 100, .k = 1000}, device).tile.m, 400);
}

// Unfused attention scores: 3 sequences x 10 heads, each 100 x 100 over k = 100: 30 tiles, 3 waves.
TEST(GemmTime, ABatchSharesTheWaves) {
  const OperatorTime time = burst(Gemm{.batch = 30, .m = 100, .n = 100, .k = 100}, toy_device());
  EXPECT_EQ(time.units, 30);
  EXPECT_EQ(time.waves, 3);
  EXPECT_DOUBLE_EQ(us(time.compute), 3 * (0.2 + 1.0));
}

// Rows of 100 bf16 elements are 200 bytes, 12.5 times 16: at 0.4 of the rate 200 kFLOP over k =
// 1000 take 2 us / 0.4. Rows of 1000 and 104 elements are whole multiples; fp32 elements always
// load.
TEST(GemmTime, OfUnalignedRowsIsSlower) {
  DeviceType device = toy_device();
  device.efficiency.value.gemm.unaligned = 0.4;
  const auto compute = [&](std::int64_t n, std::int64_t k, DType dtype) {
    return us(burst(Gemm{.m = 100, .n = n, .k = k, .dtype = dtype}, device).compute);
  };
  EXPECT_DOUBLE_EQ(compute(100, 1000, DType::kBf16), 1.0 + 2.0 / 0.4);
  EXPECT_DOUBLE_EQ(compute(96, 1000, DType::kBf16), 1.0 + 2.0);
  EXPECT_DOUBLE_EQ(compute(96, 996, DType::kBf16), 1.0 + 2.0 / 0.4);
  EXPECT_DOUBLE_EQ(compute(100, 1000, DType::kFp32), 21.0);
}

// 2 us at full rate.
TEST(GemmTime, TakesLongerWhereScalesChangeAlongK) {
  DeviceType device = toy_device();
  device.efficiency.value.gemm.block_scales = 0.8;
  device.efficiency.value.gemm.vector_scales = 0.5;
  const auto compute = [&](Scales scales) {
    return us(burst(Gemm{.m = 100, .n = 100, .k = 1000, .scales = scales}, device).compute);
  };
  EXPECT_DOUBLE_EQ(compute(Scales::kTensor), 1.0 + 2.0);
  EXPECT_DOUBLE_EQ(compute(Scales::kBlocks), 1.0 + 2.0 / 0.8);
  EXPECT_DOUBLE_EQ(compute(Scales::kVectors), 1.0 + 2.0 / 0.5);
}

// A tile of 100 x 100 that adds reads and writes 8 B a number, not 2 B: 60 kB at 60 GB/s are 1 us.
TEST(GemmTime, AddingToGradientsTakesItsLoads) {
  DeviceType device = toy_device();
  Gemm gemm{.m = 100, .n = 100, .k = 100};
  const double plain = us(burst(gemm, device).compute);
  gemm.accumulate = true;
  EXPECT_NEAR(us(burst(gemm, device).compute), plain, 1e-3);
  device.efficiency.value.gemm.operand_rate = 60_GB_s;
  gemm.accumulate = false;
  const double slow = us(burst(gemm, device).compute);
  gemm.accumulate = true;
  EXPECT_NEAR(us(burst(gemm, device).compute), slow + 1.0, 1e-9);
  device.efficiency.value.gemm.adding_rate = 20_GB_s;
  EXPECT_NEAR(us(burst(gemm, device).compute), slow + 3.0, 1e-9);
}

// Of 3 us of arithmetic and t of traffic the longer one grows to the norm; the other stays.
TEST(GemmTime, HidesTrafficBehindArithmeticAsFarAsTheyOverlap) {
  DeviceType device = toy_device();
  const Gemm gemm{.m = 100, .n = 100, .k = 1000};
  const OperatorTime hidden = burst(gemm, device);
  const double arithmetic = us(hidden.compute), traffic = us(hidden.memory);
  ASSERT_LT(traffic, arithmetic);
  device.efficiency.value.gemm.overlap = 1;
  EXPECT_NEAR(us(burst(gemm, device).compute), arithmetic + traffic, 1e-9);
  device.efficiency.value.gemm.overlap = 2;
  EXPECT_NEAR(us(burst(gemm, device).compute), std::hypot(arithmetic, traffic), 1e-9);
  EXPECT_DOUBLE_EQ(us(burst(gemm, device).memory), traffic);
  device.efficiency.value.gemm.scaled_overlap = 1;
  EXPECT_NEAR(us(burst(gemm, device).compute), std::hypot(arithmetic, traffic), 1e-9);
  const Gemm scaled{.m = 100, .n = 100, .k = 1000, .scales = Scales::kBlocks};
  EXPECT_NEAR(us(burst(scaled, device).compute), arithmetic + traffic, 1e-9);
}

// On the vector units at 0.5 of a tenth of the bf16 rate, whatever the clocks leave: 2 us / 0.05.
// Where the device does not say what they reach, as an unaligned product.
TEST(GemmTime, WithoutMatrixUnitsIsThatOfTheVectorUnits) {
  DeviceType device = toy_device();
  device.efficiency.value.gemm.unaligned = 0.4;
  const Gemm gemm{.m = 100, .n = 100, .k = 1000, .matrix_units = false};
  EXPECT_DOUBLE_EQ(us(burst(gemm, device).compute), 1.0 + 2.0 / 0.4);
  device.efficiency.value.gemm.vector = 0.5;
  EXPECT_DOUBLE_EQ(us(burst(gemm, device).compute), 1.0 + 2.0 / 0.05);
}

// fp8 without tensor cores of its own runs at the bf16 rate (2 us), fp32 on the vector units at a
// tenth of it (20 us); fp8 with cores of its own and a rate of 0.5 at 2 * 0.5 times bf16 (2 us).
TEST(GemmTime, FollowsTheDtype) {
  DeviceType device = toy_device();
  const auto compute = [&](DType dtype) {
    return us(burst(Gemm{.m = 100, .n = 100, .k = 1000, .dtype = dtype}, device).compute);
  };
  EXPECT_DOUBLE_EQ(compute(DType::kFp8), 3.0);
  EXPECT_DOUBLE_EQ(compute(DType::kFp32), 21.0);
  device.tensor_peak["fp8"].value = 200_TFLOP_s;
  EXPECT_DOUBLE_EQ(compute(DType::kFp8), 2.0);
  device.efficiency.value.gemm.rate_of["fp8"] = 0.5;
  EXPECT_DOUBLE_EQ(compute(DType::kFp8), 3.0);
}

// 1 x 10 heads, 100 queries, 1000 keys, head size 100, all keys visible: 10 units in one wave; each
// 4 * 100 * 1000 * 100 = 40 MFLOP at 10 TFLOP/s = 4 us, plus 1 us. Q and O are 10 * 100 * 100, K
// and V 10 * 1000 * 100 elements of 2 B: 4.4 MB, at half of 1 TB/s 8.8 us. Floor 3 us.
TEST(AttentionTime, OfOneWave) {
  Attention attention = attention_of(1, 10, 10, 100, 1000, 100);
  attention.causal = false;
  const OperatorTime time = burst(attention, toy_device());
  EXPECT_EQ(time.units, 10);
  EXPECT_DOUBLE_EQ(us(time.compute), 5.0);
  EXPECT_DOUBLE_EQ(us(time.memory), 8.8);
  EXPECT_DOUBLE_EQ(us(time.total()), 11.8);
}

// Causal, 1000 x 1000, 10 heads: 100 units; one sees (1000 + 100) / 2 = 550 keys on average: 2.2 us
// + 1 us. 10 rounds, and one unit at the end: 11 * 3.2 us.
TEST(AttentionTime, OfCausalUnitsIsBalanced) {
  Attention attention = attention_of(1, 10, 10, 1000, 1000, 100);
  EXPECT_DOUBLE_EQ(us(burst(attention, toy_device()).compute), 11 * 3.2);
  // Alone on the device, the longest unit decides: 4 us + 1 us.
  attention.query_heads = attention.kv_heads = 1;
  EXPECT_DOUBLE_EQ(us(burst(attention, toy_device()).compute), 5.0);
}

// As above, in a window of 300 tokens: a unit sees it and its own 100 tokens, the first three 100,
// 200 and 300: (600 + 7 x 400) / 10 = 340 on average, 1.36 us + 1 us. The longest: 400.
TEST(AttentionTime, OfAWindowIsThatOfItsUnits) {
  Attention attention = attention_of(1, 10, 10, 1000, 1000, 100);
  attention.window = 300;
  EXPECT_DOUBLE_EQ(us(burst(attention, toy_device()).compute), 11 * 2.36);
  attention.query_heads = attention.kv_heads = 1;
  EXPECT_DOUBLE_EQ(us(burst(attention, toy_device()).compute), 2.6);
  // One that leaves out none is none.
  attention.window = 900;
  EXPECT_DOUBLE_EQ(us(burst(attention, toy_device()).compute), 5.0);
}

// As the first, packed of two samples of 500: 10 x 2 x 5 units as of sequences of 500 tokens.
TEST(AttentionTime, OfPackedSamplesIsThatOfAsManySequences) {
  Attention packed = attention_of(1, 10, 10, 1000, 1000, 100);
  packed.sample = 500;
  Attention apart = packed;
  apart.sample = 0;
  apart.batch = 2;
  apart.query_length = apart.key_length = 500;
  EXPECT_DOUBLE_EQ(us(burst(packed, toy_device()).compute), us(burst(apart, toy_device()).compute));
}

// Heads of 100 columns whose values have 50: 150 columns of products, not 200, at the rate of 75.
TEST(AttentionTime, FollowsTheWidthOfValues) {
  Attention attention = attention_of(1, 10, 10, 100, 1000, 100);
  attention.causal = false;
  attention.value_dim = 50;
  const double part = us(burst(attention, toy_device()).compute) - 1;
  attention.head_dim = 75;
  attention.value_dim = 0;
  const double of_mean = us(burst(attention, toy_device()).compute) - 1;
  EXPECT_NEAR(part, of_mean, 1e-12);
}

// Five products instead of two at half the forward's rate: 4 us * 2.5 * 2 = 20 us, plus 1 us. At
// head size 75 the rate is half-way between 0.25 and 0.5, and there is 3/4 of the work. Around it
// 10 x 1,000 rows of results and their gradients (2 x 100 x 2 B) and of gradients of queries
// (cleared and read in fp32, written in 2 B: 100 x 10 B) pass through the memory: 14 MB at 0.5
// TB/s, 28 us.
TEST(AttentionTime, Backward) {
  Attention attention = attention_of(1, 10, 10, 1000, 100, 100);
  attention.causal = false;
  attention.direction = Direction::kBackward;
  EXPECT_DOUBLE_EQ(us(burst(attention, toy_device()).compute), 21.0 + 28.0);
  attention.head_dim = 75;
  EXPECT_DOUBLE_EQ(us(burst(attention, toy_device()).compute), 1.0 + 20.0 * 0.75 / 0.75 + 21.0);
}

// FlashAttention has no kernel for heads of 100: that for 128 computes 128 / 100 of the 4 us, and
// bounds leave 0.87 of the rate. One for 96 runs as it is.
TEST(AttentionTime, HeadsArePaddedToThoseOfTheKernels) {
  DeviceType device = toy_device();
  Attention attention = attention_of(1, 10, 10, 100, 1000, 100);
  attention.causal = false;
  attention.implementation = AttentionImplementation::kFlash2;
  EXPECT_DOUBLE_EQ(us(burst(attention, device).compute), 4.0 * 1.28 / 0.87 + 1.0);
  attention.implementation = AttentionImplementation::kFused;
  EXPECT_DOUBLE_EQ(us(burst(attention, device).compute), 5.0);
  device.compute_capability.value = 80;  // where the usual kernel is FlashAttention's
  EXPECT_DOUBLE_EQ(us(burst(attention, device).compute), 4.0 * 1.28 / 0.87 + 1.0);
  attention.head_dim = 96;
  EXPECT_DOUBLE_EQ(us(burst(attention, device).compute), 4.0 * 0.96 / 0.96 + 1.0);
}

// The device's usual kernel takes 5 us, as in OfOneWave; one that it lists at a quarter of the rate
// 16 us + 1 us; one that it does not list what the usual one takes.
TEST(AttentionTime, IsThatOfTheImplementation) {
  DeviceType device = toy_device();
  AttentionEfficiency slow = device.efficiency->attention;
  for (AttentionRate& line : slow.rates) line.forward /= 4;
  device.efficiency.value.attention_of["cudnn"] = slow;
  Attention attention = attention_of(1, 10, 10, 100, 1000, 100);
  attention.causal = false;
  EXPECT_DOUBLE_EQ(us(burst(attention, device).compute), 5.0);
  attention.implementation = AttentionImplementation::kCudnn;
  EXPECT_DOUBLE_EQ(us(burst(attention, device).compute), 17.0);
  attention.implementation = AttentionImplementation::kTritonFlash1;
  EXPECT_DOUBLE_EQ(us(burst(attention, device).compute), 5.0);
}

// 1e6 elements, 2 B read and 2 B written each: 4 MB at half of 1 TB/s = 8 us; GELU at a quarter 16.
TEST(PassTime, IsBytesOverWhatThePassReaches) {
  const OperatorTime plain =
      burst(Pass{.kind = PassKind::kBiasAdd, .rows = 1'000'000}, toy_device());
  EXPECT_DOUBLE_EQ(us(plain.total()), 10.0);
  EXPECT_EQ(plain.bound(), Bound::kMemory);
  const OperatorTime gelu =
      burst(Pass{.kind = PassKind::kGeluForward, .rows = 1'000'000}, toy_device());
  EXPECT_DOUBLE_EQ(us(gelu.memory), 16.0);
}

// 8 us of memory traffic, whoever moves it, and 2 us for each of four kernels.
TEST(PassTime, OfSeveralLaunchesHasTheFloorOfEach) {
  const Pass pass{.kind = PassKind::kBiasAdd, .rows = 1'000'000, .launches = 4};
  EXPECT_DOUBLE_EQ(us(burst(pass, toy_device()).total()), 16.0);
}

TEST(OperatorTime, OfNothingIsTheFloor) {
  EXPECT_DOUBLE_EQ(us(burst(Gemm{.m = 0, .n = 1, .k = 1}, toy_device()).total()), 2.0);
  EXPECT_DOUBLE_EQ(us(burst(Attention{.query_length = 0}, toy_device()).total()), 3.0);
  EXPECT_DOUBLE_EQ(us(burst(Pass{.rows = 0}, toy_device()).total()), 2.0);
  EXPECT_EQ(burst(Pass{.rows = 1}, toy_device()).bound(), Bound::kFloor);
}

TEST(OperatorTime, IsExplained) {
  const Kernel kernel = Gemm{.m = 1001, .n = 100, .k = 1000};
  EXPECT_EQ(explain(kernel, burst(kernel, toy_device())),
            "gemm 1001x100x1000 bf16: 8.00 us, compute-bound (11 tiles of 100x100 in 2 waves)");
}

TEST(CachedOperatorTime, RemembersAndAgrees) {
  const DeviceType device = toy_device();
  CachedOperatorTime times(device);
  const Kernel gemm = Gemm{.m = 1001, .n = 100, .k = 1000};
  const Kernel wider = Gemm{.m = 1001, .n = 101, .k = 1000};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(times(gemm), time_of(gemm, device).total());
    EXPECT_EQ(times(wider), time_of(wider, device).total());
  }
  EXPECT_EQ(times.size(), 2U);
}

}  // namespace
}  // namespace foreshard
