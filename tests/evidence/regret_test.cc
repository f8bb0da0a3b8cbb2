// Groups of measured strategies, and what a search among them takes.

#include "evidence/accuracy.h"
#include "evidence/report.h"
#include "tests/evidence/tables.h"
#include "tests/test.h"

namespace foreshard::accuracy {
namespace {

// A step of a small GPT on eight A100, split over `tensor` ranks and as many replicas as are left.
std::string line(const std::string& id, int tensor, int micro_batch, const std::string& value,
                 const std::string& framework = "Megatron-LM", int batch = 32) {
  return id + ",SC21,," + framework + ",A100,80,8,8,,GPT,,4,1024,16,16,4096,50257,1024,,," +
         std::to_string(tensor) + ",1,1,1," + std::to_string(8 / tensor) + ",1,0," +
         std::to_string(micro_batch) + "," + std::to_string(batch) + ",none,False,fp16,step_time," +
         value + ",ms,\n";
}

std::string five(const std::vector<std::string>& values) {
  return line("t1m1", 1, 1, values[0]) + line("t1m4", 1, 4, values[1]) +
         line("t2m2", 2, 2, values[2]) + line("t4m4", 4, 4, values[3]) +
         line("t8m8", 8, 8, values[4]);
}

class RegretOfTables : public testing::Test {
 protected:
  Report of(const std::string& lines) {
    Options asked = options();
    asked.regret = true;
    return value_of(score({tables_.write("table.csv", kTrainingHeader + lines)}, asked));
  }
  Tables tables_;
};

// By hand: what simulates the fastest of the five was measured at 120 ms, the fastest at 100.
TEST_F(RegretOfTables, IsWhatTheChoiceWasMeasuredSlower) {
  const Report first = of(five({"200", "200", "200", "200", "200"}));
  ASSERT_TRUE(first.regret);
  ASSERT_EQ(first.regret->groups.size(), 1U);
  const std::string chosen = first.regret->groups[0].chosen;
  const auto least = std::ranges::min_element(
      first.rows, {}, [](const Outcome& row) { return row.predicted.value_or(1e9); });
  EXPECT_EQ(chosen, least->id);

  std::vector<std::string> values;
  for (const Outcome& row : first.rows) values.push_back(row.id == chosen ? "120" : "200");
  const std::string other = first.rows[chosen == "t8m8" ? 0 : 4].id;
  values[chosen == "t8m8" ? 0 : 4] = "100";
  const Report second = of(five(values));
  ASSERT_EQ(second.regret->groups.size(), 1U);
  const RegretGroup& group = second.regret->groups[0];
  EXPECT_EQ(group.chosen, chosen);
  EXPECT_EQ(group.simulates, chosen);
  EXPECT_EQ(group.fastest, other);
  EXPECT_NEAR(group.regret_pct, 20, 1e-9);
  EXPECT_NEAR(group.slower_pct, 0, 1e-9);
  EXPECT_EQ(group.strategies, 5);
  ASSERT_EQ(group.members.size(), 5U);
  const auto member = std::ranges::find(group.members, other, &GroupMember::id);
  ASSERT_NE(member, group.members.end());
  for (const GroupMember& one : group.members) EXPECT_GE(one.measured, member->measured);
  EXPECT_TRUE(group.certified);
  EXPECT_EQ(group.devices, 8);
  EXPECT_EQ(group.batch, 32);
  EXPECT_NEAR(second.regret->overall.mean_pct, 20, 1e-9);
  ASSERT_TRUE(group.tau);
  EXPECT_EQ(group.tau, second.regret->overall.tau);
  EXPECT_FALSE(first.regret->groups[0].tau) << "all were measured alike";
  EXPECT_NEAR(second.regret->files.at("table.csv").worst_pct, 20, 1e-9);
  EXPECT_THAT(to_text(second), HasSubstr("regret of a search, in percent"));
}

// Rows of one strategy are one, with the mean of their times: (90 + 150) / 2 = 120, beside 100.
TEST_F(RegretOfTables, RowsOfOneStrategyCountByTheirMean) {
  const Report plain = of(five({"200", "200", "200", "200", "200"}));
  const std::string chosen = plain.regret->groups[0].chosen;
  std::vector<std::string> values;
  for (const Outcome& row : plain.rows) values.push_back(row.id == chosen ? "90" : "100");
  const std::string lines = five(values);
  std::string again = lines.substr(lines.find(chosen));
  again = "again" + again.substr(0, again.find('\n') + 1).substr(chosen.size());
  again.replace(again.find(",90,"), 4, ",150,");
  const Report twice = of(lines + again);
  EXPECT_EQ(twice.regret->groups[0].strategies, 5);
  EXPECT_NEAR(twice.regret->groups[0].regret_pct, 20, 1e-9);
  const auto& members = twice.regret->groups[0].members;
  const auto member = std::ranges::find(members, chosen, &GroupMember::id);
  ASSERT_NE(member, members.end());
  EXPECT_NEAR(member->measured / members.front().measured, member == members.begin() ? 1 : 1.2,
              1e-9);
}

// Four strategies are too few; a fifth of another framework or another batch is not of them.
TEST_F(RegretOfTables, GroupsAreOfOneSettingAndFiveStrategies) {
  const std::string four = line("t1m1", 1, 1, "100") + line("t1m4", 1, 4, "100") +
                           line("t2m2", 2, 2, "100") + line("t4m4", 4, 4, "100");
  const Report few = of(four);
  EXPECT_TRUE(few.regret->groups.empty());
  EXPECT_EQ(few.regret->overall.groups, 0);
  EXPECT_THAT(to_text(few), HasSubstr("no 5 strategies of one model were measured"));
  EXPECT_TRUE(of(four + line("t8m8", 8, 8, "100", "InternEvo")).regret->groups.empty());
  EXPECT_TRUE(of(four + line("t8m8", 8, 8, "100", "Megatron-LM", 64)).regret->groups.empty());
  EXPECT_EQ(of(four + line("t8m8", 8, 8, "100")).regret->groups.size(), 1U);
}

TEST_F(RegretOfTables, IsThereWhereItIsAskedFor) {
  const auto report = value_of(score(
      {tables_.write("table.csv", kTrainingHeader + five({"1", "1", "1", "1", "1"}))}, options()));
  EXPECT_FALSE(report.regret);
}

}  // namespace
}  // namespace foreshard::accuracy
