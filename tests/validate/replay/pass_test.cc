// Every pass on the host against plain loops in double, in each dtype; and that its arrays are the
// bytes that its line of traffic_of() says. The GPU's kernels are held to the host's:
// gpu/kernels_test.cc.
#include <cstring>

#include "tests/test.h"
#include "tests/validate/replay/pass_oracle.h"

#include "validate/replay/number.h"
#include "validate/replay/pass/operands.h"

namespace foreshard::replay::pass_test {

using Stored = std::vector<std::byte>;

template <class F>
void for_elements(DType dtype, Stored& bytes, F f) {
  with_storage(dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
      T number;
      std::memcpy(&number, &bytes[i * sizeof(T)], sizeof(T));
      f(i, number);
      std::memcpy(&bytes[i * sizeof(T)], &number, sizeof(T));
    }
  });
}
Stored encoded(DType dtype, const std::vector<double>& values, std::size_t bytes) {
  Stored stored(bytes);
  for_elements(dtype, stored,
               [&](std::size_t i, auto& number) { store(static_cast<float>(values[i]), number); });
  return stored;
}
std::vector<double> decoded(DType dtype, Stored& bytes) {
  std::vector<double> values;
  for_elements(dtype, bytes, [&](std::size_t, auto& number) {
    values.push_back(static_cast<double>(to_float(number)));
  });
  return values;
}

struct Outcome {
  Arrays got{};
  Arrays want{};
};
// Runs it on random numbers between -2 and 2, and masks.
Outcome outcome_of(const Pass& pass) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> number(-2.0, 2.0);
  const std::vector<PassArray> arrays = arrays_of(pass);
  std::vector<Stored> bytes;
  std::vector<void*> pointers;
  bytes.reserve(arrays.size());
  pointers.reserve(arrays.size());
  Outcome out;
  for (const PassArray& array : arrays) {
    std::vector<double> values(static_cast<std::size_t>(array.count));
    for (double& value : values)
      value = array.dtype == DType::kInt8 ? (number(random) < 1.6 ? 1 : 0) : number(random);
    bytes.push_back(encoded(array.dtype, values, array.bytes()));
    out.want.push_back(decoded(array.dtype, bytes.back()));
  }
  for (Stored& array : bytes) pointers.push_back(array.data());
  run_on_host(pass, pointers);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    out.got.push_back(decoded(arrays[i].dtype, bytes[i]));
  if (pass.kind == PassKind::kDropoutForward || pass.kind == PassKind::kBiasDropoutAddForward)
    out.want.back() = out.got.back();
  compute(pass, out.want);
  return out;
}

// Half a unit in the last place, relatively.
double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::kFp16:
      return 0x1p-11;
    case DType::kBf16:
      return 0x1p-8;
    case DType::kFp8:
      return 0x1p-4;
    default:
      return 0x1p-24;
  }
}

TEST(Pass, ComputesWhatItIsNamedAfter) {
  struct Shape {
    std::int64_t rows;
    std::int64_t columns;
  };
  for (int kind = 0; kind <= static_cast<int>(PassKind::kOptimizer); ++kind)
    for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16, DType::kFp8})
      for (const Shape shape : {Shape{37, 24}, Shape{5, 256}, Shape{9, 130}, Shape{3, 2056},
                                Shape{2, 1101}, Shape{1, 1}, Shape{70, 33}, Shape{0, 8}}) {
        if (dtype == DType::kFp8 && shape.columns > 33) continue;  // its sums are coarse
        const Pass pass{static_cast<PassKind>(kind), shape.rows, shape.columns, dtype};
        const Outcome x = outcome_of(pass);
        const std::vector<PassArray> arrays = arrays_of(pass);
        for (std::size_t i = 0; i < arrays.size(); ++i)
          for (std::size_t e = 0; e < x.got[i].size(); ++e)
            ASSERT_NEAR(
                x.got[i][e], x.want[i][e],
                (1.1 * rounding_of(arrays[i].dtype) + 1e-5) * std::abs(x.want[i][e]) +
                    (arrays[i].dtype == DType::kFp8 || dtype == DType::kFp8 ? 0x1p-10 : 0.0) + 2e-4)
                << describe(Kernel(pass)) << ", array " << i << ", element " << e;
      }
}

// States of 8 bytes: two arrays of four; of 7: one, and three of single bytes.
TEST(Pass, AdamsStatesHaveTheBytesThatAreAskedFor) {
  for (const std::int32_t states : {4, 6, 7, 8, 12}) {
    const Pass pass{PassKind::kAdam, 37, 24, DType::kBf16, states};
    const Outcome x = outcome_of(pass);
    const std::vector<PassArray> arrays = arrays_of(pass);
    double updated = 0;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (arrays[i].access == Access::kUpdate) updated += static_cast<double>(arrays[i].bytes());
      for (std::size_t e = 0; e < x.got[i].size(); ++e)
        ASSERT_NEAR(x.got[i][e], x.want[i][e], 0.005 * std::abs(x.want[i][e]) + 1e-5)
            << describe(Kernel(pass)) << ", array " << i;
    }
    EXPECT_EQ(updated, 37 * 24 * states);
  }
}

TEST(Pass, DropoutKeepsNineInTen) {
  for (const PassKind kind : {PassKind::kDropoutForward, PassKind::kBiasDropoutAddForward}) {
    double kept = 0;
    const Outcome x = outcome_of({kind, 100, 370, DType::kFp32});
    for (const double m : x.got.back()) kept += m;
    // 37000 draws: 0.9 within 4 standard deviations of 0.00156.
    EXPECT_NEAR(kept / 37000, 0.9, 0.0063);
  }
}

// Integers move as many bytes as floating-point numbers, and are computed with as such.
TEST(Pass, TakesIntegersForNumbersOfTheirSize) {
  for (const auto& [integer, number] :
       {std::pair{DType::kInt8, DType::kFp8}, {DType::kInt32, DType::kFp32}})
    EXPECT_EQ(outcome_of({PassKind::kBinary, 3, 70, integer}).got,
              outcome_of({PassKind::kBinary, 3, 70, number}).got);
  EXPECT_EQ(outcome_of({PassKind::kBinary, 3, 70, DType::kInt64}).got,
            outcome_of({PassKind::kBinary, 3, 140, DType::kFp32}).got);
}

// Arrays of at least an element for each of rows x columns are the bytes of the table. One differs
// on purpose: the logits of cross-entropy are one array that is read twice.
TEST(Pass, MovesTheBytesOfItsTable) {
  constexpr std::int64_t kRows = 64;
  constexpr std::int64_t kColumns = 1024;
  for (int i = 0; i <= static_cast<int>(PassKind::kOptimizer); ++i) {
    const Pass pass{static_cast<PassKind>(i), kRows, kColumns, DType::kBf16};
    const PassTraffic& line = traffic_of(pass.kind);
    double read = pass.kind == PassKind::kCrossEntropyForward ? 2 : 0;
    double written = 0;
    for (const PassArray& array : arrays_of(pass)) {
      const bool in_halves =  // two elements in a byte
          pass.kind == PassKind::kQuantizeFp4 || pass.kind == PassKind::kQuantizeFp4Twice ||
          pass.kind == PassKind::kDequantizeNf4;
      if (array.count < kRows * kColumns / (in_halves ? 2 : 1)) continue;
      const double each = static_cast<double>(array.bytes()) / (kRows * kColumns);
      if (array.access != Access::kWrite) read += each;
      if (array.access != Access::kRead) written += each;
    }
    EXPECT_EQ(read, 2 * line.read_elements + line.other_bytes_read) << line.name;
    EXPECT_EQ(written, 2 * line.written_elements + line.other_bytes_written) << line.name;
  }
}

}  // namespace foreshard::replay::pass_test
