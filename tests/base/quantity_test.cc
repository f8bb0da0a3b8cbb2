#include "base/quantity.h"

#include <rapidcheck.h>

#include "tests/test.h"

namespace foreshard::quantity_test {

template <class Q>
Q read(const std::string& text) {
  const auto quantity = parse<Q>(text);
  if (!quantity) ADD_FAILURE() << quantity.error().message;
  return quantity ? *quantity : Q();
}

TEST(Quantity, ReadsWhatPeopleWrite) {
  EXPECT_EQ(read<BytesPerSecond>("400 Gbit/s"), 50_GB_s);
  EXPECT_EQ(read<BytesPerSecond>("900 GB/s"), 900_GB_s);
  EXPECT_EQ(read<Bytes>("80 GiB"), 80_GiB);
  EXPECT_EQ(read<Bytes>("5 kB"), 5000_B);
  EXPECT_EQ(read<Seconds>("2 us"), 2_us);
  EXPECT_EQ(read<Seconds>("1.5 min"), 90_s);
  EXPECT_EQ(read<FlopsPerSecond>("312 TFLOP/s"), 312_TFLOP_s);
  EXPECT_EQ(read<Flops>("1e3 TFLOP"), 1_PFLOP);
  EXPECT_EQ(read<Watts>("700 W"), 700_W);
  EXPECT_EQ(read<DollarsPerSecond>("2.5 USD/h"), 2.5_USD_h);
  EXPECT_EQ(read<DollarsPerJoule>("0.10 USD/kWh"), 0.10_USD_kWh);
  EXPECT_EQ(read<KilogramsPerJoule>("400 g/kWh"), 0.4_kg_kWh);
  EXPECT_EQ(read<Seconds>("4 y") / 24_h, 1461);
  EXPECT_EQ(read<Hertz>("1.98 GHz"), 1.98_GHz);
  EXPECT_EQ(read<Joules>("1 kWh"), 1_kW * 1_h);
}

TEST(Quantity, TakesSpacesAndSignsAsTheyCome) {
  EXPECT_EQ(read<Seconds>("2us"), 2_us);
  EXPECT_EQ(read<Seconds>("  .5   s "), 500_ms);
  EXPECT_EQ(read<Seconds>("-3 ms"), -3_ms);
}

TEST(Quantity, ShowsTheBeginningOfALongText) {
  const auto quantity = parse<Seconds>("2 " + std::string(100'000, 'x'));
  ASSERT_FALSE(quantity);
  EXPECT_LT(quantity.error().message.size(), 300u);
}

TEST(Quantity, FormatsWithThreeDigits) {
  EXPECT_EQ(format(64_MiB / 400_Gbit_s), "1.34 ms");
  EXPECT_EQ(format(12.34_GiB), "12.3 GiB");
  EXPECT_EQ(format(1023_KiB), "1023 KiB");
  EXPECT_EQ(format(512_B), "512 B");
  EXPECT_EQ(format(0_s), "0 s");
  EXPECT_EQ(format(Seconds::from_base(999.96e-6)), "1.00 ms");  // rounds up into the next unit
  EXPECT_EQ(format(90_min), "1.50 h");
  EXPECT_EQ(format(-3_ms), "-3.00 ms");
  EXPECT_EQ(format(Seconds::from_base(1e-12)), "0.001 ns");
  EXPECT_EQ(format(400_Gbit_s), "50.0 GB/s");
  EXPECT_EQ(format(2.5_USD_h), "2.50 USD/h");
  EXPECT_EQ(format(Dollars::from_base(0)), "0 USD");
  EXPECT_EQ(format(Seconds::from_base(std::numeric_limits<double>::infinity())), "inf s");
}

TEST(Quantity, FormatsExactlyInTheShortestWay) {
  EXPECT_EQ(format_exact(80_GiB), "80 GiB");
  EXPECT_EQ(format_exact(50_GB_s), "50 GB/s");
  EXPECT_EQ(format_exact(2_us), "2 us");
  EXPECT_EQ(format_exact(0_B), "0 B");
  EXPECT_EQ(format_exact(2.5_USD_h), "2.5 USD/h");
  // 16 lanes of PCIe 5.0: no unit makes it short, so it is in the one that people use.
  const auto pcie = 16 * 32.0 * 128 / 130 / 8 * 1_GB_s;
  EXPECT_TRUE(format_exact(pcie).ends_with(" GB/s")) << format_exact(pcie);
}

// Property: what is written exactly reads back as the very same value, in every dimension.
TEST(Quantity, ExactTextReadsBack) {
  EXPECT_TRUE(rc::check([](double value) {
    for (std::size_t i = 0; i < kDimensions; ++i) {
      const auto dimension = static_cast<Dimension>(i);
      const auto back = parse_quantity(format_quantity_exact(value, dimension), dimension);
      RC_ASSERT(std::holds_alternative<double>(back));
      RC_ASSERT(std::get<double>(back) == value);
    }
  }));
}

// Property: the text for people is within half a unit of its third digit.
TEST(Quantity, RoundedTextIsNear) {
  EXPECT_TRUE(rc::check([](double wild) {
    const double value = std::abs(wild) < 1e-9 || std::abs(wild) > 1e15 ? 1.0 : wild;
    const auto back = read<BytesPerSecond>(format(BytesPerSecond::from_base(value)));
    RC_ASSERT(std::abs(back.in_base() - value) <= 0.005001 * std::abs(value));
  }));
}

// Every suffix that a message offers is read, and larger ones mean more.
TEST(Quantity, EverySuffixOfTheTableIsRead) {
  for (std::size_t i = 0; i < kDimensions; ++i) {
    const auto dimension = static_cast<Dimension>(i);
    double last = 0;
    for (const Suffix& suffix : dimension_info(dimension).suffixes) {
      const auto one = parse_quantity("1 " + std::string(suffix.text), dimension);
      ASSERT_TRUE(std::holds_alternative<double>(one)) << suffix.text;
      EXPECT_EQ(std::get<double>(one), suffix.scale);
      EXPECT_GE(suffix.scale, last) << suffix.text << " is out of order";
      last = suffix.scale;
    }
  }
}

}  // namespace foreshard::quantity_test
