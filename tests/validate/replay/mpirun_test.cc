// foreshard-replay --host under mpirun, as users start it: what happens to all ranks when one
// hangs or dies.

#include "base/file.h"
#include "tests/test.h"
#include "tests/validate/replay/job.h"

#include "strategies/program/ir/json.h"

namespace foreshard::replay {
namespace {

constexpr int kRanks = 4;

// A kernel of a few milliseconds and a reduction over all ranks, three times.
std::string small_program() {
  program::Program program;
  program.name = "small";
  program.mesh = {{"data", kRanks}};
  program.streams = {{"compute"}};
  program.blocks = {
      {"layer",
       {{"gemm",
         Kernel(Gemm{.m = 256, .n = 256, .k = 256, .dtype = DType::kFp32}),
         program::StreamId(0),
         {}},
        {"grads",
         program::Communication{
             .group = program::AxisGroup{{0}, {}}, .bytes = 64_KiB, .dtype = DType::kFp32},
         program::StreamId(0),
         {}}}}};
  program.roles = {{.name = "all",
                    .ranks = {0, 1, 2, 3},
                    .calls = {{.block = program::BlockId(0), .repeat = 3}}}};
  return program::to_json(program);
}

std::vector<pid_t> children_of(pid_t parent) {
  const std::string number = std::to_string(parent);
  std::ifstream file("/proc/" + number + "/task/" + number + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

// Whether it still runs after a moment. Those whose parent is gone may stay as zombies until
// somebody asks for them.
bool runs(pid_t process) {
  for (int i = 0; i < 100; ++i) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    if (!std::getline(file, line)) return false;
    const char state = line.at(line.rfind(')') + 2);
    if (state == 'Z' || state == 'X') return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

class UnderMpirun : public testing::Test {
 protected:
  pid_t start(Job::Words more) {
    const std::string program = job_.path("program.json");
    EXPECT_TRUE(write_file(program, small_program()).ok());
    Job::Words words{"-n", std::to_string(kRanks), "--oversubscribe", "--bind-to", "none"};
    if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
    words.insert(words.end(), {FORESHARD_REPLAY, program, "--host"});
    words.insert(words.end(), more.begin(), more.end());
    return job_.start("/usr/bin/env",
                      [&] {
                        words.insert(words.begin(), "mpirun");
                        return words;
                      }(),
                      {});
  }

  // The ranks, once all of them run.
  std::vector<pid_t> ranks_of(pid_t mpirun) {
    for (int i = 0; i < 1000; ++i) {
      auto ranks = children_of(mpirun);
      if (ranks.size() == kRanks) return ranks;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "mpirun did not start the ranks";
    return {};
  }

  void expect_nothing_written() {
    for (const auto& entry : std::filesystem::directory_iterator(job_.path("")))
      EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("measured")));
  }

  Job job_;
};

TEST_F(UnderMpirun, VerifiesAndMeasures) {
  start({"--verify", "-o", job_.path("measured.json"), "--repeats", "3"});
  const auto outcome = job_.wait(std::chrono::seconds(60))[0];
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("verified 12 communications of 4 ranks, 196608 elements: all "
                                     "as expected\nreplayed small (host, 4 ranks)"));
}

TEST_F(UnderMpirun, EndsAHangOnAllRanks) {
  start({"-o", job_.path("measured.json"), "--hang", "2:3", "--watchdog", "8"});
  const auto outcome = job_.wait(std::chrono::seconds(60))[0];
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_THAT(outcome.err,
                HasSubstr("error: rank " + std::to_string(rank) + ": nothing finished"));
  expect_nothing_written();
}

TEST_F(UnderMpirun, SaysOnAllRanksWhichWasKilledAndLeavesNoOrphans) {
  const pid_t mpirun = start({"-o", job_.path("measured.json"), "--repeats", "1000000"});
  const auto ranks = ranks_of(mpirun);
  ASSERT_EQ(ranks.size(), static_cast<std::size_t>(kRanks));
  std::this_thread::sleep_for(std::chrono::seconds(3));
  ::kill(ranks[1], SIGKILL);
  const auto outcome = job_.wait(std::chrono::seconds(60))[0];
  EXPECT_NE(outcome.code, 0);
  for (const int rank : {0, 2, 3})
    EXPECT_THAT(outcome.err, HasSubstr("error: rank " + std::to_string(rank) + ": rank 1 ("));
  EXPECT_THAT(outcome.err,
              HasSubstr("process " + std::to_string(ranks[1]) + ") ended without a word"));
  for (const pid_t rank : ranks) EXPECT_FALSE(runs(rank));
  expect_nothing_written();
}

TEST_F(UnderMpirun, EndsAllRanksWhenItIsInterrupted) {
  const pid_t mpirun = start({"-o", job_.path("measured.json"), "--repeats", "1000000"});
  const auto ranks = ranks_of(mpirun);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  ::kill(mpirun, SIGINT);
  const auto outcome = job_.wait(std::chrono::seconds(60))[0];
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("interrupted by SIG"));
  for (const pid_t rank : ranks) EXPECT_FALSE(runs(rank));
  expect_nothing_written();
}

// The front: a Program in, mpirun composed, its code and its words handed on.
TEST(ForeshardReplay, ComposesMpirunAndHandsOnWhatCameOfIt) {
  Job job;
  const std::string program = job.path("program.json");
  ASSERT_TRUE(write_file(program, small_program()).ok());
  job.start(FORESHARD_PROGRAM, {"replay", program, "--host", "--verify"}, {});
  job.start(FORESHARD_PROGRAM,
            {"replay", program, "--host", "--launch", "mpirun-of-nobody -n 4", "--verify"}, {});
  job.start(FORESHARD_PROGRAM, {"replay", program, "--host"}, {});
  job.start(FORESHARD_PROGRAM, {"replay", program, "--host", "--verify", "-n", "3"}, {});
  const auto outcomes = job.wait(std::chrono::seconds(60));
  EXPECT_EQ(outcomes[0].code, 0) << outcomes[0].err;
  EXPECT_THAT(outcomes[0].out, HasSubstr("verified 12 communications of 4 ranks"));
  EXPECT_EQ(outcomes[1].code, 2);
  EXPECT_THAT(outcomes[1].err, HasSubstr("mpirun-of-nobody: No such file or directory"));
  EXPECT_EQ(outcomes[2].code, 2);
  EXPECT_THAT(outcomes[2].err, HasSubstr("nothing to do"));
  EXPECT_EQ(outcomes[3].code, 2);
  EXPECT_THAT(outcomes[3].err, HasSubstr("-n is 3, but the Program has 4 ranks"));
}

}  // namespace
}  // namespace foreshard::replay
