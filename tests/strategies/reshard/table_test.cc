// The conversions of OneFlow's table (Yuan et al., "OneFlow: Redesign the Distributed Deep Learning
// Framework from Scratch", arXiv:2110.15032, Table 2), which R2.4 and R2.5 give too: which
// primitive, and how many bytes by either form. Golden: what is printed here is compared as text.
#include <fmt/format.h>

#include "tests/golden/golden.h"
#include "tests/test.h"

#include "strategies/graph/layout.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard::table_test {

struct TableRow {
  const char* name;
  const char* from;
  const char* to;
};

// The plan of fewest bytes; ties go to fewer steps.
Plan cheapest(const TensorSpec& tensor, const Layout& from, const Layout& to) {
  return value_of(candidates(tensor, from, to,
                             [&](const Step& step) -> Result<Seconds> {
                               return 1_s * (volume_of(step, tensor).exact_total / 1_B);
                             }))
      .plans.front();
}

// In units of T, the bytes of the whole tensor.
std::string line(const TableRow& row, const TensorSpec& tensor) {
  const auto from = parse_layout(row.from, tensor.shape);
  const auto to = parse_layout(row.to, tensor.shape);
  EXPECT_TRUE(from) << from.error().message;
  EXPECT_TRUE(to) << to.error().message;
  const Plan plan = cheapest(tensor, *from, *to);
  const Volume volume = volume_of(plan, tensor);
  return fmt::format("{:<16} {:<34} {:<34} {:<44} {:>8.4g} {:>8.4g}\n", row.name, row.from, row.to,
                     plan.name, volume.patent_total / bytes_of(tensor),
                     volume.exact_total / bytes_of(tensor));
}

TEST(ConversionTable, IsOneFlows) {
  const TensorSpec tensor = *parse_tensor("bf16[48, 48]");
  // p = 4; where the groups differ, 4 ranks to 3 others.
  const std::vector<TableRow> rows{
      {"S(i) to S(i)", "p=4 [p, -]", "p=4 [p, -]"},
      {"S(i) to S(j)", "p=4 [p, -]", "p=4 [-, p]"},
      {"S to B", "p=4 [p, -]", "p=4 [-, -]"},
      {"S to P", "p=4 [p, -]", "p=4 [-, -] sum(p)"},
      {"B to S", "p=4 [-, -]", "p=4 [p, -]"},
      {"B to B", "p=4 [-, -]", "p=4 [-, -]"},
      {"B to P", "p=4 [-, -]", "p=4 [-, -] sum(p)"},
      {"P to S", "p=4 [-, -] sum(p)", "p=4 [p, -]"},
      {"P to B", "p=4 [-, -] sum(p)", "p=4 [-, -]"},
      {"P to P", "p=4 [-, -] sum(p)", "p=4 [-, -] sum(p)"},
      {"S(i) to S(i)'", "p=4 [p, -]", "q=3 @4-6 [q, -]"},
      {"S(i) to S(j)'", "p=4 [p, -]", "q=3 @4-6 [-, q]"},
      {"S to B'", "p=4 [p, -]", "q=3 @4-6 [-, -]"},
      {"S to P'", "p=4 [p, -]", "q=3 @4-6 [-, -] sum(q)"},
      {"B to S'", "p=4 [-, -]", "q=3 @4-6 [q, -]"},
      {"B to B'", "p=4 [-, -]", "q=3 @4-6 [-, -]"},
      {"B to P'", "p=4 [-, -]", "q=3 @4-6 [-, -] sum(q)"},
      {"P to S'", "p=4 [-, -] sum(p)", "q=3 @4-6 [q, -]"},
      {"P to B'", "p=4 [-, -] sum(p)", "q=3 @4-6 [-, -]"},
      {"P to P'", "p=4 [-, -] sum(p)", "q=3 @4-6 [-, -] sum(q)"},
      {"(S0,B)-(B,S1)", "a=2,b=4 [a, -]", "a=2,b=4 [-, b]"},
      {"(S0,S1)-(S1,S0)", "a=4,b=4 [a, b]", "a=4,b=4 [b, a]"},
      {"(S0,S0)-(S1,S1)", "a=2,b=4 [b+a, -]", "a=2,b=4 [-, b+a]"},
      {"(S0,S0)-(B,S0)", "a=2,b=4 [a+b, -]", "a=2,b=4 [b, -]"},
      {"(S0,S1)-(B,B)", "a=2,b=4 [a, b]", "a=2,b=4 [-, -]"},
      {"(P,S0)-(S0,B)", "a=2,b=4 [b, -] sum(a)", "a=2,b=4 [a, -]"},
      {"(P,P)-(S0,S1)", "a=2,b=4 [-, -] sum(a,b)", "a=2,b=4 [a, b]"},
      {"(P,P)-(B,B)", "a=2,b=4 [-, -] sum(a,b)", "a=2,b=4 [-, -]"},
      {"(P,B)-(B,P)", "a=2,b=4 [-, -] sum(a)", "a=2,b=4 [-, -] sum(b)"},
      {"(B,B)-(S0,P)", "a=2,b=4 [-, -]", "a=2,b=4 [a, -] sum(b)"},
      {"8 to (4,2)", "tp=8 [tp, -]", "tp=4,pp=2 [pp, tp]"},
  };
  std::string text = fmt::format("{:<16} {:<34} {:<34} {:<44} {:>8} {:>8}\n", "conversion", "from",
                                 "to", "steps", "R2.5 / T", "exact / T");
  for (const TableRow& row : rows) text += line(row, tensor);
  expect_golden("reshard/table.txt", text);
}

struct Entry {
  const char* from;
  const char* to;
  Primitive primitive;
  double patent;  // In units of T.
  double exact;
};

// The formulas by hand, p = 4: S(i)->S(j) T and 3/4 T; S->B and P->S pT and (p-1)T; P->B 2pT and
// 2(p-1)T; the rest is local. Between 4 ranks and 3 others all of T must cross once, and to B'
// three times.
TEST(ConversionTable, HasTheVolumesOfTheFormulas) {
  const TensorSpec tensor = *parse_tensor("bf16[48, 48]");
  const std::vector<Entry> entries{
      {"p=4 [p, -]", "p=4 [-, p]", Primitive::kAllToAll, 1, 0.75},
      {"p=4 [p, -]", "p=4 [-, -]", Primitive::kAllGather, 4, 3},
      {"p=4 [-, -] sum(p)", "p=4 [p, -]", Primitive::kReduceScatter, 4, 3},
      {"p=4 [-, -] sum(p)", "p=4 [-, -]", Primitive::kAllReduce, 8, 6},
      {"p=4 [-, -]", "p=4 [-, p]", Primitive::kSlice, 0, 0},
      {"p=4 [-, -]", "p=4 [-, -] sum(p)", Primitive::kPad, 0, 0},
      {"p=4 [p, -]", "p=4 [-, -] max(p)", Primitive::kPad, 0, 0},
      {"p=4 [p, -]", "q=3 @4-6 [q, -]", Primitive::kTransfer, 1, 1},
      {"p=4 [p, -]", "q=3 @4-6 [-, -]", Primitive::kTransfer, 3, 3},
  };
  for (const Entry& entry : entries) {
    SCOPED_TRACE(std::string(entry.from) + " to " + entry.to);
    const Plan plan = cheapest(tensor, *parse_layout(entry.from, tensor.shape),
                               *parse_layout(entry.to, tensor.shape));
    ASSERT_EQ(plan.steps.size(), 1u) << plan.name;
    EXPECT_EQ(plan.steps[0].primitive, entry.primitive) << plan.name;
    const Volume volume = volume_of(plan, tensor);
    EXPECT_DOUBLE_EQ(volume.patent_total / bytes_of(tensor), entry.patent);
    EXPECT_DOUBLE_EQ(volume.exact_total / bytes_of(tensor), entry.exact);
  }
}

struct Crossing {
  const char* from;
  const char* to;
  double exact;  // In units of T.
};

// Other devices, p1 = 4 to p2 = 3: T, but p2 T to B, p1 T from P, (p1 + p2 - 1) T from P to B.
TEST(ConversionTable, HasTheVolumesBetweenGroups) {
  const TensorSpec tensor = *parse_tensor("bf16[48, 48]");
  const std::vector<Crossing> crossings{
      {"p=4 [p, -]", "q=3 @4-6 [q, -]", 1},
      {"p=4 [p, -]", "q=3 @4-6 [-, q]", 1},
      {"p=4 [p, -]", "q=3 @4-6 [-, -]", 3},
      {"p=4 [p, -]", "q=3 @4-6 [-, -] sum(q)", 1},
      {"p=4 [-, -]", "q=3 @4-6 [q, -]", 1},
      {"p=4 [-, -]", "q=3 @4-6 [-, -]", 3},
      {"p=4 [-, -]", "q=3 @4-6 [-, -] sum(q)", 1},
      {"p=4 [-, -] sum(p)", "q=3 @4-6 [q, -]", 4},
      {"p=4 [-, -] sum(p)", "q=3 @4-6 [-, -]", 6},
      {"p=4 [-, -] sum(p)", "q=3 @4-6 [-, -] sum(q)", 4},
  };
  for (const Crossing& crossing : crossings) {
    SCOPED_TRACE(std::string(crossing.from) + " to " + crossing.to);
    const Plan plan = cheapest(tensor, *parse_layout(crossing.from, tensor.shape),
                               *parse_layout(crossing.to, tensor.shape));
    EXPECT_DOUBLE_EQ(volume_of(plan, tensor).exact_total / bytes_of(tensor), crossing.exact)
        << plan.name;
  }
}

std::string fault(const std::string& text) {
  const auto tensor = parse_tensor(text);
  return tensor ? describe(*tensor) : tensor.error().message;
}

TEST(TensorText, ReadsAndShowsThePlaceOfAFault) {
  EXPECT_EQ(fault("bf16[8192,53248]"), "bf16[8192, 53248]");
  EXPECT_EQ(fault(" fp32 [ ]"), "fp32[]");
  EXPECT_EQ(fault("bf16[8192, x]"),
            "tensor: expected the extent of a dimension, a whole number, found 'x'\n"
            "  bf16[8192, x]\n"
            "             ^");
  EXPECT_THAT(fault("bf17[8]"), HasSubstr("'bf17' is not an element type: known are 'fp32'"));
  EXPECT_THAT(fault("bf16"), HasSubstr("expected '[' and the extents"));
  EXPECT_THAT(fault("bf16[8"), HasSubstr("expected ',' or ']', but it ends here"));
  EXPECT_THAT(fault("bf16[8] 9"), HasSubstr("expected the end of the text"));
  EXPECT_THAT(fault("bf16[-8]"), HasSubstr("a whole number, found '-'"));
  EXPECT_THAT(fault("int8[9000000000000,9000]"), HasSubstr("more than 2^53 bytes"));
}

std::string refusal(const char* from, const char* to, const Shape& shape, std::size_t ranks) {
  CandidateOptions options;
  options.node_of_rank.resize(ranks);
  Layout source = *parse_layout(from, {12});
  const Layout target = *parse_layout(to, {12});
  const auto found = candidates(
      {DType::kBf16, shape}, source, target,
      [](const Step&) -> Result<Seconds> {
        return Error{Error::Code::kInfeasible, "no link to rank 1"};
      },
      options);
  return message_of(found);
}

TEST(Candidates, SayWhyThereAreNone) {
  EXPECT_THAT(refusal("p=4 [p]", "p=4 [-]", {10}, 4),
              HasSubstr("source layout: dimension 0 of extent 10 is not divisible"));
  EXPECT_THAT(refusal("p=4 [p]", "p=2 @9,10 [p]", {12}, 10),
              HasSubstr("target layout: rank 10 is not in the cluster, which has ranks 0 to 9"));
  EXPECT_THAT(refusal("p=4 [p]", "p=4 [-]", {12}, 4), HasSubstr("no link to rank 1"));
}

}  // namespace foreshard::reshard::table_test
