// Output of nccl-tests in three forms: text of today, text of before 2.13, JSON.
#include "validate/calibrate/nccl_tests.h"

#include <rapidcheck.h>

#include "base/file.h"
#include "tests/test.h"

namespace foreshard::calibrate::nccl_tests_test {

std::string golden(const std::string& name) {
  const auto text = read_file(FORESHARD_SOURCE_DIR "/tests/golden/nccl_tests/" + name, 1_MiB);
  FORESHARD_CHECK(text);
  return *text;
}

TEST(NcclTests, ReadsText) {
  const std::string text = golden("all_reduce.txt");
  EXPECT_TRUE(is_nccl_tests(text));
  const auto run = value_of(read_nccl_tests(text, "out.txt"));
  EXPECT_EQ(run.operation, "all_reduce");
  EXPECT_EQ(run.nccl_version, "2.28.9");
  EXPECT_EQ(run.ranks.size(), 4U);
  EXPECT_EQ(run.nodes(), 2);
  EXPECT_EQ(run.ranks[3].device, "NVIDIA H100 80GB HBM3");
  ASSERT_EQ(run.rows.size(), 4U);
  EXPECT_EQ(run.rows[0].line, 17U);
  EXPECT_EQ(run.rows[1].size, 16_KiB);
  EXPECT_NEAR(run.rows[1].in_place->time / 1_us, 43.1, 1e-9);
  EXPECT_FALSE(run.rows[1].in_place->wrong.has_value());
  EXPECT_EQ(run.rows[1].out_of_place->wrong, 0);
}

// The faster of both ways, as a row of a table of collectives.
TEST(NcclTests, BecomesATableOfCollectives) {
  const auto run = value_of(read_nccl_tests(golden("all_reduce.txt"), "out.txt"));
  const CsvTable table = table_of(run, "out.txt", "two boxes");
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_THAT(table.rows[0].fields,
              ElementsAre("out.txt:17", "out.txt", "two boxes", "NVIDIA H100 80GB HBM3", "4", "2",
                          "", "", "2.28.9", "all_reduce", "float", "1024", "30.5"));
}

// The operation is in the file's name, the cell of redop is empty, `error` is what rounding leaves.
TEST(NcclTests, ReadsTextOfOldVersions) {
  const auto run =
      value_of(read_nccl_tests(golden("sendrecv_perf.old.txt"), "a/sendrecv_perf.old.txt"));
  EXPECT_EQ(run.operation, "sendrecv");
  EXPECT_EQ(run.ranks[1].device, "Tesla V100-SXM2-16GB");
  ASSERT_EQ(run.rows.size(), 1U);
  EXPECT_NEAR(run.rows[0].out_of_place->time / 1_us, 11.5, 1e-9);
}

// Nothing stands behind an empty cell of the last column.
TEST(NcclTests, ReadsAnEmptyLastCell) {
  const auto run =
      value_of(read_nccl_tests("# Rank 0 Pid 1 on a device 0 [0x00] V100\n"
                               "# size count type time redop\n"
                               "8 2 float 11.5\n",
                               "sendrecv_perf.txt"));
  ASSERT_EQ(run.rows.size(), 1U);
  EXPECT_EQ(run.rows[0].reduction, "");
  EXPECT_NEAR(run.rows[0].out_of_place->time / 1_us, 11.5, 1e-9);
}

TEST(NcclTests, ReadsJson) {
  const std::string text = golden("all_gather.json");
  EXPECT_TRUE(is_nccl_tests(text));
  const auto run = value_of(read_nccl_tests(text, "out.json"));
  EXPECT_EQ(run.operation, "all_gather");
  EXPECT_EQ(run.nccl_version, "2.28.9");
  EXPECT_EQ(run.ranks.size(), 4U);  // two processes of two GPUs; one of each is listed
  EXPECT_EQ(run.nodes(), 2);
  ASSERT_EQ(run.rows.size(), 2U);
  EXPECT_NEAR(run.rows[0].in_place->time / 1_us, 87.5, 1e-9);
  EXPECT_FALSE(run.rows[1].in_place.has_value());
  EXPECT_FALSE(run.rows[1].out_of_place->wrong.has_value());
  EXPECT_EQ(table_of(run, "out.json", "m").rows[1].fields[12], "210.25");
}

// Where the test does not name itself: a command line, the file's name, the user.
TEST(NcclTests, FindsTheOperation) {
  std::string text = golden("all_reduce.txt");
  const std::string line = "# Collective test starting: all_reduce_perf\n";
  ASSERT_NE(text.find(line), std::string::npos);
  text.erase(text.find(line), line.size());
  const auto operation = [&](const std::string& before, const std::string& name,
                             const std::string& told = "") {
    const auto run = read_nccl_tests(before + text, name, told);
    return run ? run->operation : run.error().message;
  };
  EXPECT_EQ(operation("> /opt/nccl-tests/build/reduce_scatter_perf -b 8\n", "out.md"),
            "reduce_scatter");
  for (const auto& [name, expected] : {std::pair{"all_reduce_perf.log", "all_reduce"},
                                       {"sb_nccl_allreduce.log", "all_reduce"},
                                       {"nccl-AllGather.txt", "all_gather"},
                                       {"reducescatter.log", "reduce_scatter"},
                                       {"all_to_all_perf.out", "alltoall"}})
    EXPECT_EQ(operation("", name), expected) << name;
  EXPECT_EQ(operation("", "out.txt", "broadcast"), "broadcast");
  EXPECT_THAT(operation("./all_gather_perf\n", "out.txt", "broadcast"),
              HasSubstr("the text says all_gather, not broadcast as --op does"));
}

// Editors of web pages take "#" for a heading.
TEST(NcclTests, ReadsRanksThatLostTheirMark) {
  std::string text = golden("all_reduce.txt");
  const auto place = text.find("#  Rank  0");
  ASSERT_NE(place, std::string::npos);
  text.erase(place, 1);
  EXPECT_EQ(value_of(read_nccl_tests(text, "out.txt")).ranks.size(), 4U);
}

// A loop over the programs of nccl-tests, all printed into one file.
TEST(NcclTests, RefusesASecondRunInOneFile) {
  const std::string text = golden("all_reduce.txt");
  EXPECT_THAT(message_of(read_nccl_tests(text + text, "out.txt")),
              HasSubstr("another run begins here"));
  EXPECT_TRUE(read_nccl_tests(text + "# of the launcher\nsrun: done\n", "out.txt"));
}

// Whatever happens to a file, it is read or refused with its name; rows keep sizes and times.
TEST(NcclTests, DamagedFilesAreReadOrRefused) {
  for (const char* name : {"all_reduce.txt", "all_gather.json"}) {
    const std::string sound = golden(name);
    rc::check([&] {
      std::string text = sound;
      for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
        const auto place = *rc::gen::inRange<std::size_t>(0, text.size());
        if (*rc::gen::arbitrary<bool>()) text.erase(place, *rc::gen::inRange<std::size_t>(1, 40));
        if (place < text.size()) text[place] = *rc::gen::arbitrary<char>();
      }
      const auto run = read_nccl_tests(text, "all_reduce_perf.txt");
      if (!run) {
        RC_ASSERT(run.error().message.starts_with("all_reduce_perf.txt:"));
        return;
      }
      RC_ASSERT(!run->rows.empty() && run->nodes() >= 1);
      for (const NcclTestsRow& row : run->rows) {
        RC_ASSERT(row.size >= 0_B);
        RC_ASSERT(row.out_of_place || row.in_place);
      }
    });
  }
}

// What launchers put in front of each line; the rows are those of the plain text.
TEST(NcclTests, ReadsWhatLaunchersTagged) {
  const std::string text = golden("all_reduce.txt");
  const auto plain = value_of(read_nccl_tests(text, "out.txt"));
  const auto tagged = [&](const std::string& tag) {
    std::string result;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      result += tag + text.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
    return result;
  };
  for (const std::string tag :
       {"[1,0]<stdout>:", "[1,0]<stdout>: ", "[prterun-a-1@1,0]<stdout>:", "0: ", " 0: ", "[0] ",
        "[default0]:", "Nov 28 21:33:25 ", "Sat Nov 28 21:33:25 2026", "2026-11-28T21:33:25.123Z ",
        "[2026-11-28 21:33:25] ", "2026/11/28 21:33:25 ", "21:33:25.5 ", "1764365605.123456 ",
        "2026-11-28T21:33:25.123456789Z stdout F ", "Sat Nov 28 21:33:25 2026[1,0]<stdout>:",
        "node-a: ", "worker-0  | ", "2026-11-28T21:33:25+01:00 [1,0]<stdout>:"}) {
    SCOPED_TRACE(tag);
    const std::string log = tagged(tag);
    EXPECT_TRUE(is_nccl_tests(log));
    const auto run = value_of(read_nccl_tests(log, "out.txt"));
    EXPECT_EQ(run.operation, plain.operation);
    EXPECT_EQ(run.ranks.size(), plain.ranks.size());
    ASSERT_EQ(run.rows.size(), plain.rows.size());
    for (std::size_t i = 0; i < run.rows.size(); ++i) {
      EXPECT_EQ(run.rows[i].size, plain.rows[i].size);
      EXPECT_EQ(run.rows[i].in_place->time, plain.rows[i].in_place->time);
    }
  }
}

// By their structure, not by a word that stands in them.
TEST(NcclTests, AreToldFromOtherFormats) {
  EXPECT_FALSE(is_nccl_tests(
      R"({"header": {"n_ranks": 8}, "coll_perf": {"coll": "AllReduce", "results": 1}})"));
  EXPECT_FALSE(is_nccl_tests(
      R"({"schemaVersion": 1, "traceEvents": [{"name": "arch_perfmon", "results": 1}]})"));
  EXPECT_FALSE(is_nccl_tests("id,source,notes\n1,a,all_reduce_perf prints nThread 1 (elements)\n"));
  EXPECT_FALSE(is_nccl_tests(""));
  EXPECT_TRUE(is_nccl_tests(std::string(100'000, '\n') + golden("all_reduce.txt")));
}

}  // namespace foreshard::calibrate::nccl_tests_test
