#include "base/csv.h"

#include <rapidcheck.h>

#include "tests/test.h"

namespace foreshard::csv_test {

TEST(Csv, ReadsHeaderAndRows) {
  const auto table = value_of(read_csv("id,value\r\na,1\r\n\r\nb,2\r\n", "t.csv"));
  EXPECT_THAT(table.header, ElementsAre("id", "value"));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_THAT(table.rows[1].fields, ElementsAre("b", "2"));
  EXPECT_EQ(table.rows[1].line, 4u);
  EXPECT_EQ(table.column("value"), 1u);
  EXPECT_EQ(table.column("absent"), std::nullopt);
}

TEST(Csv, QuotesHoldCommasBreaksAndQuotes) {
  const auto table =
      value_of(read_csv("\xEF\xBB\xBFid,notes\n1,\"a, \"\"b\"\"\nc\"\n2,\n", "t.csv"));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_THAT(table.rows[0].fields, ElementsAre("1", "a, \"b\"\nc"));
  EXPECT_THAT(table.rows[1].fields, ElementsAre("2", ""));
  EXPECT_EQ(table.rows[1].line, 4u);
}

// Property: fields with any content survive writing by the RFC's rules and reading back.
TEST(Csv, ReadsBackWhatTheRulesWrite) {
  EXPECT_TRUE(rc::check([](const std::vector<std::string>& fields) {
    std::string text = "a,b\n";
    for (const std::string& field : fields) text += csv_field(field) + ",x\n";
    const auto table = read_csv(text, "t.csv");
    RC_ASSERT(table.has_value());
    RC_ASSERT(table->rows.size() == fields.size());
    for (std::size_t i = 0; i < fields.size(); ++i)
      RC_ASSERT(table->rows[i].fields[0] == fields[i]);
  }));
}

}  // namespace foreshard::csv_test
