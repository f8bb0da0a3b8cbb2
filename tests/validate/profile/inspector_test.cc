#include "validate/profile/inspector.h"

#include "tests/test.h"

namespace foreshard::profile {
namespace {

std::string record(int rank, const std::string& operation, int number, int bytes, int micros) {
  return R"({"header": {"id": "0x1", "rank": )" + std::to_string(rank) +
         R"(, "n_ranks": 8, "nnodes": 1}, "metadata": {"inspector_output_format_version": "v4.0"}, )"
         R"("coll_perf": {"coll": ")" +
         operation + R"(", "coll_sn": )" + std::to_string(number) + R"(, "coll_msg_size_bytes": )" +
         std::to_string(bytes) + R"(, "coll_exec_time_us": )" + std::to_string(micros) + "}}\n";
}

// Rank 1 came last: its 40 us are what the all-reduce took.
TEST(Inspector, TakesTheShortestOfAllRanks) {
  const std::string text = record(0, "AllReduce", 5, 1 << 20, 95) +
                           record(1, "AllReduce", 5, 1 << 20, 40) +
                           record(0, "AllReduce", 6, 1 << 20, 41);
  ASSERT_TRUE(is_inspector(text));
  const auto dump = value_of(read_inspector(text, "dump.log"));
  ASSERT_EQ(dump.size(), 2U);
  EXPECT_EQ(dump[0].kind, program::CollectiveKind::kAllReduce);
  EXPECT_EQ(dump[0].bytes, 1_MiB);
  EXPECT_EQ(dump[0].ranks, 8);
  EXPECT_NEAR(dump[0].time / 1_us, 40, 1e-9);
}

// Of 8 ranks, each of which gets 1 MiB: 8 MiB are scattered.
TEST(Inspector, CountsBytesAsProgramsDo) {
  const auto dump =
      value_of(read_inspector(record(0, "ReduceScatter", 1, 1 << 20, 30), "dump.log"));
  EXPECT_EQ(dump[0].bytes, 8_MiB);
}

TEST(Inspector, TakesAHeaderThatComesOnce) {
  const auto dump = read_inspector(
      R"({"header": {"id": "0x2", "rank": 0, "n_ranks": 4, "nnodes": 2}, "dump_stats": {}}
{
  "coll_perf": {"coll": "AllGather", "coll_sn": 1, "coll_msg_size_bytes": 1024,
                "coll_exec_time_us": 12}
})",
      "dump.log");
  ASSERT_TRUE(dump) << dump.error().message;
  EXPECT_EQ((*dump)[0].ranks, 4);
  EXPECT_EQ((*dump)[0].nodes, 2);
  EXPECT_EQ((*dump)[0].bytes, 4_KiB);
}

std::string dump_fault(const std::string& text) {
  return message_of(read_inspector(text, "dump.log"));
}

TEST(Inspector, NamesTheFaultAndItsLine) {
  EXPECT_THAT(dump_fault(""), HasSubstr("dump.log:1: holds no collective"));
  EXPECT_THAT(dump_fault("\n{\"a\": }"), HasSubstr("dump.log:2: no JSON"));
  EXPECT_THAT(dump_fault("{\"header\": {"), HasSubstr("dump.log:1: ends inside of a record"));
  EXPECT_THAT(dump_fault("{\"coll_perf\": {\"coll\": \"AllReduce\"}}"),
              HasSubstr("no header says"));
  EXPECT_THAT(dump_fault("{\"header\": {\"n_ranks\": 0}}"),
              HasSubstr("n_ranks: is no number of ranks"));
  EXPECT_THAT(dump_fault("{\"header\": {\"n_ranks\": 2}, \"coll_perf\": {\"coll\": \"AllReduce\", "
                         "\"coll_msg_size_bytes\": -1}}"),
              HasSubstr("coll_msg_size_bytes: is no size"));
}

TEST(Inspector, IsToldFromOtherFormats) {
  EXPECT_TRUE(is_inspector(R"({"header": {"id": "0x1", "n_ranks": 8}, "metadata": {}})"));
  EXPECT_FALSE(is_inspector(
      R"({"traceEvents": [{"name": "header", "args": {"header": 1, "coll_perf": 2}}]})"));
  EXPECT_FALSE(is_inspector(R"({"version": 1, "config": {"header": "coll_perf"}, "results": []})"));
}

}  // namespace
}  // namespace foreshard::profile
