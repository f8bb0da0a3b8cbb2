// Formats of tables of kernels as data: formulas, conditions, rows that are left out, and faults.
#include "validate/tables/kernel_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foreshard::accuracy {
namespace kernel_rows_test {

using testing::HasSubstr;

class KernelRows : public testing::Test {
 protected:
  KernelFormat format(const std::string& text) {
    auto read = loader_.read_text<KernelFormat>(text, "format.yaml");
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    return read ? *std::move(read) : KernelFormat{};
  }
  std::string fault(const std::string& text) {
    const auto read = loader_.read_text<KernelFormat>(text, "format.yaml");
    return read ? "no fault" : read.error().message;
  }
  // The rows of a table with one line for each text.
  std::vector<KernelRow> rows(const KernelFormat& format, const std::string& header,
                              const std::vector<std::string>& lines) {
    std::string text = header + "\n";
    for (const std::string& line : lines) text += line + "\n";
    return kernel_rows(format, *read_csv(text, "table.csv"), "table.csv");
  }
  yaml::Loader loader_{{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}}};
};

// A format of one's own needs a file and no code: other names of columns, a time in ms, operators
// by their words, and rows that say nothing about a kernel.
const std::string kOwn = R"(
name: mine
columns: [what, out, in, ms]
times: [{column: ms, unit: 1 ms}]
unknown: "'{what}' is new to us"
values: {half: out / 2}
operators:
  - {where: {what: =dense}, kernels: [{kernel: gemm, sizes: {m: tokens or 8, n: out, k: in}}]}
  - {where: {what: [=swish, =silu]}, name: gate, kernels: [{kernel: swiglu_fwd, sizes: {rows: 8, columns: half}}]}
skip: [{where: {remark: eager, what: "!=dense"}, reason: "'{remark}' launches one by one"}]
)";

TEST_F(KernelRows, OfAFormatOfOnesOwn) {
  const auto found = rows(format(kOwn), "id,gpu,what,tokens,out,in,ms,remark",
                          {"a,H100,dense,64,4096,1024,0.25,eager", "b,H100,dense,,4096,1024,0.25,",
                           "c,H100,silu,,512,,0.125,", "d,H100,silu,,512,,0.125,eager mode",
                           "e,H100,conv,,1,1,1,", "f,H100,dense,,4096,none,0.25,"});
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(found[0].id, "a");
  EXPECT_EQ(found[0].gpu, "H100");
  EXPECT_EQ(found[0].operation, "gemm");
  EXPECT_DOUBLE_EQ(found[0].measured / 1_us, 250);
  EXPECT_EQ(std::get<Gemm>(found[0].kernels.at(0)), (Gemm{.m = 64, .n = 4096, .k = 1024}));
  EXPECT_EQ(std::get<Gemm>(found[1].kernels.at(0)).m, 8);
  EXPECT_EQ(found[2].operation, "gate");
  EXPECT_EQ(std::get<Pass>(found[2].kernels.at(0)),
            (Pass{.kind = PassKind::kSwigluForward, .rows = 8, .columns = 256}));
  EXPECT_EQ(found[3].obstacle, "'eager mode' launches one by one");
  EXPECT_EQ(found[4].obstacle, "'conv' is new to us");
  EXPECT_EQ(found[5].obstacle, "line 7: 'none' in column 'in' is not a whole number above 0");
}

// 2 + 3 x 4 = 14; (2 + 3) x 4 = 20; 20 / 3 = 6; max(6, 7) = 7; of 0 nothing is divided.
TEST_F(KernelRows, FormulasAreOfWholeNumbers) {
  const auto columns = [&](const std::string& formula) {
    const auto found =
        rows(format("name: n\ncolumns: [a]\ntimes: [{column: a, unit: 1 us}]\noperators: "
                    "[{kernels: [{kernel: zero, sizes: {columns: \"" +
                    formula + "\"}}]}]"),
             "a,b,c", {"4,3,"});
    return std::get<Pass>(found.at(0).kernels.at(0)).columns;
  };
  EXPECT_EQ(columns("2 + b * a"), 14);
  EXPECT_EQ(columns("(2+b)*a/3"), 6);
  EXPECT_EQ(columns("max((2 + b) * a / b, 7)"), 7);
  EXPECT_EQ(columns("min(a, c or b)"), 3);
  EXPECT_EQ(columns("a / (c or 0)"), 0);
}

TEST_F(KernelRows, ValuesMayNotReferToThemselves) {
  const auto found = rows(format("name: n\ncolumns: [a]\nvalues: {x: y + 1, y: x}\noperators: "
                                 "[{kernels: [{kernel: zero, sizes: {rows: x}}]}]"),
                          "a", {"4"});
  EXPECT_THAT(found.at(0).obstacle, HasSubstr("refers to itself"));
}

TEST_F(KernelRows, FaultsOfFormatsHaveAPlace) {
  const std::string head = "name: n\ncolumns: [a]\noperators: [{kernels: [{";
  EXPECT_THAT(fault(head + "kernel: gem, sizes: {}}]}]"), HasSubstr("neither gemm"));
  EXPECT_THAT(fault(head + "kernel: gemm, sizes: {o: 1}}]}]"), HasSubstr("no size 'o'"));
  for (const char* formula : {"a +", "(a", "a b", "max(a)", "", "a ? b", "2x"})
    EXPECT_THAT(fault(head + "kernel: gemm, sizes: {m: \"" + formula + "\"}}]}]"),
                HasSubstr("is not a formula"))
        << formula;
  EXPECT_THAT(fault(head + "kernel: gemm, sizes: {}, implementation: mine}]}]"),
              HasSubstr("'mine' is no kernel of fused attention"));
  EXPECT_THAT(fault("name: n\ncolumns: [a]\nimplementations: {x: unfused}\n"),
              HasSubstr("'unfused' is no kernel"));
  EXPECT_THAT(fault("name: n\ncolumns: [a]\nskip: [{equal: [a], reason: r}]\n"),
              HasSubstr("two columns"));
}

TEST_F(KernelRows, FormatsThatNeedMoreColumnsComeFirst) {
  const auto formats = read_kernel_formats(loader_);
  ASSERT_TRUE(formats) << formats.error().message;
  ASSERT_GE(formats->size(), 12u);
  for (std::size_t i = 1; i < formats->size(); ++i)
    EXPECT_GE((*formats)[i - 1].columns.size(), (*formats)[i].columns.size());
}

}  // namespace kernel_rows_test
}  // namespace foreshard::accuracy
