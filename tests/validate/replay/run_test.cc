// The real command line, process by process, with an executor that computes nothing
// (fake_replay.cc).
#include "validate/replay/run.h"

#include "base/file.h"
#include "base/net/socket.h"
#include "tests/test.h"
#include "tests/validate/replay/job.h"

#include "strategies/program/ir/json.h"
#include "validate/measurement/measurement.h"

namespace foreshard::replay {
namespace {

using program::Program;

// Data-parallel: `layers` iterations of a kernel and a reduction over all ranks. Instance 2k is the
// kernel, 2k + 1 the reduction of layer k.
Program data_parallel(std::int64_t ranks, std::int32_t layers) {
  Program program;
  program.name = "small";
  program.mesh = {{"data", ranks}};
  program.streams = {{"compute"}};
  program.blocks = {{"layer",
                     {{"gemm", Kernel(Gemm{.m = 8, .n = 8, .k = 8}), program::StreamId(0), {}},
                      {"grads",
                       program::Communication{.group = program::AxisGroup{{0}, {}}, .bytes = 1_MiB},
                       program::StreamId(0),
                       {}}}}};
  program::Role role{.name = "all", .calls = {{.block = program::BlockId(0), .repeat = layers}}};
  for (std::int32_t rank = 0; rank < ranks; ++rank) role.ranks.push_back(rank);
  program.roles = {role};
  return program;
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

class Replays : public testing::Test {
 protected:
  std::string write(const Program& program, const std::string& name = "program.json") {
    const std::string path = job_.path(name);
    EXPECT_TRUE(write_file(path, program::to_json(program)).ok());
    return path;
  }

  Job::Variables rank_of(std::int32_t rank, std::int32_t ranks) {
    if (port_.empty()) port_ = std::to_string(net::listen_on("127.0.0.1", 0)->port);
    return {{"RANK", std::to_string(rank)},
            {"WORLD_SIZE", std::to_string(ranks)},
            {"LOCAL_RANK", std::to_string(rank)},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", port_},
            {"FAKE_FAULT", fault_}};
  }

  void start(std::int32_t ranks, const Job::Words& arguments) {
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      job_.start(FAKE_REPLAY, arguments, rank_of(rank, ranks));
  }

  // Of each rank that failed: one line, and the exit code.
  static void expect_end(const RankOutcome& outcome, int code, const std::string& message) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(lines_in(outcome.err), 1U) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(StartsWith("error: "), HasSubstr(message)));
  }

  // Neither the file nor what it would have been made of.
  void expect_nothing_written() {
    for (const auto& entry : std::filesystem::directory_iterator(job_.path("")))
      EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("measured")));
  }

  Job job_;
  std::string fault_;
  std::string port_;
};

TEST_F(Replays, MeasuresAllRanks) {
  const std::string program = write(data_parallel(4, 3));
  const std::string file = job_.path("measured.json");
  start(4, {program, "--host", "-o", file, "--repeats", "4", "--warmup", "1", "--verify"});
  const auto outcomes = job_.wait();
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.err, IsEmpty());
  }
  EXPECT_THAT(outcomes[0].out,
              AllOf(StartsWith("verified 12 communications of 4 ranks, 48 elements: all as "
                               "expected\nreplayed small (host, 4 ranks): 1 to warm up, 4 "
                               "steps measured\nstep "),
                    HasSubstr("rank 3 on fake 3: peak 1.00 MiB of buffers")));
  EXPECT_THAT(outcomes[1].out, IsEmpty());
  const auto measured = value_of(measure::measurement_from_json(Job::text_of(file)));
  EXPECT_EQ(measured.program, "small");
  EXPECT_EQ(measured.fingerprint, measure::fingerprint_of(data_parallel(4, 3)));
  EXPECT_EQ(measured.backend, "host");
  EXPECT_EQ(measured.warmup, 1);
  EXPECT_EQ(measured.repeats, 4);
  EXPECT_EQ(measured.machines.size(), 1U);  // All say the same of it.
  ASSERT_EQ(measured.ranks.size(), 4U);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto& record = measured.ranks[rank];
    EXPECT_EQ(record.rank, static_cast<std::int32_t>(rank));
    EXPECT_EQ(record.device, "fake " + std::to_string(rank));
    EXPECT_EQ(record.steps.size(), 4U);
    ASSERT_EQ(record.tasks.size(), 6U);
    EXPECT_GE(record.tasks[0].median, 2_ms);  // Kernels sleep for 2 ms.
    EXPECT_LE(record.tasks[0].low, record.tasks[0].high);
    EXPECT_EQ(record.readings.size(), 2U);
  }
}

TEST_F(Replays, MeetsInAFolder) {
  const std::string program = write(data_parallel(2, 1));
  const std::string file = job_.path("measured.json");
  start(2, {program, "--host", "-o", file, "--rendezvous", job_.path("meeting")});
  for (const auto& outcome : job_.wait()) EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(measure::measurement_from_json(Job::text_of(file)));
}

// As mpirun on one host: no address, but a job's name.
TEST_F(Replays, MeetsOnOneHostWithoutAnAddress) {
  const std::string program = write(data_parallel(3, 1));
  const std::string file = job_.path("measured.json");
  for (int rank = 0; rank < 3; ++rank)
    job_.start(FAKE_REPLAY, {program, "--host", "-o", file},
               {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
                {"OMPI_COMM_WORLD_SIZE", "3"},
                {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank)},
                {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                {"TMPDIR", job_.path("")},
                {"PMIX_NAMESPACE", "test." + std::to_string(::getpid())}});
  for (const auto& outcome : job_.wait()) EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(measure::measurement_from_json(Job::text_of(file)));
}

// The fake's steps vary by far more than a millionth: it goes on to the limit. Within 90 % they are
// after a round or two.
TEST_F(Replays, GoesOnUntilMediansAreKnown) {
  const std::string program = write(data_parallel(2, 1));
  const auto repeats = [&](const std::string& until) {
    Job job;
    const std::string file = job.path("measured.json");
    for (int rank = 0; rank < 2; ++rank)
      job.start(
          FAKE_REPLAY,
          {program, "--host", "-o", file, "--repeats=6", "--until=" + until, "--most-repeats=13"},
          rank_of(rank, 2));
    for (const auto& outcome : job.wait()) EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto measured = measure::measurement_from_json(Job::text_of(file));
    return measured ? measured->repeats : -1;
  };
  EXPECT_EQ(repeats("0.0001%"), 13);
  port_.clear();
  EXPECT_LT(repeats("90%"), 13);
}

// Steps of 2 ms for 1 s: more than the 10 that are the default, and at most 500.
TEST_F(Replays, MeasuresForATime) {
  const std::string program = write(data_parallel(2, 1));
  const std::string file = job_.path("measured.json");
  const auto begin = std::chrono::steady_clock::now();
  start(2, {program, "--host", "-o", file, "--for", "1s"});
  const auto outcomes = job_.wait();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcomes[0].out, HasSubstr(" beside; 20 C\n"));
  const auto measured = value_of(measure::measurement_from_json(Job::text_of(file)));
  EXPECT_GT(measured.repeats, 10);
  EXPECT_LE(measured.repeats, 550);
  for (const auto& rank : measured.ranks) {
    ASSERT_TRUE(rank.during);
    EXPECT_GT(rank.during->samples, 3);
    EXPECT_EQ(rank.during->celsius, (measure::Span{20, 20, 20}));
    EXPECT_FALSE(rank.tasks[0].lasted);
    EXPECT_TRUE(rank.tasks[1].lasted);
  }
}

// Point 4: a forced hang ends within the watchdog's time, and each rank names the culprit.
TEST_F(Replays, EndsAHangAndNamesTheCulprit) {
  const std::string program = write(data_parallel(4, 3));
  const auto begin = std::chrono::steady_clock::now();
  start(4,
        {program, "--host", "-o", job_.path("measured.json"), "--hang", "2:2", "--watchdog", "2"});
  const auto outcomes = job_.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2500));
  for (std::size_t rank : {0u, 1u, 3u})
    expect_end(outcomes[rank], 6,
               " s: rank " + std::to_string(rank) +
                   " waits in all_reduce grads (layer 1, micro-batch 0; 1.00 MiB) of ranks 0-3 for "
                   "rank 2, which is in kernel gemm (layer 1, micro-batch 0; gemm 8x8x8 bf16); "
                   "rank 2 is the culprit");
  expect_end(outcomes[2], 6, "rank 2 is the culprit");
  expect_nothing_written();
}

// Instance 3 is the reduction of layer 1 itself: the others are in it, rank 1 says it is, too, but
// it is not: it never issued it. That is what --hang does to a rank before its communication.
TEST_F(Replays, EndsAHangInsideACommunication) {
  const std::string program = write(data_parallel(2, 2));
  start(2, {program, "--host", "--verify", "-o", job_.path("measured.json"), "--hang", "1:3",
            "--watchdog", "1"});
  for (const auto& outcome : job_.wait())
    expect_end(outcome, 6, "as all members of it do: the network or the library hangs");
}

TEST_F(Replays, NamesARankThatDoesNotAnswer) {
  const std::string program = write(data_parallel(3, 40));
  start(3, {program, "--host", "-o", job_.path("measured.json"), "--repeats", "1000", "--watchdog",
            "1"});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  job_.signal(1, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  job_.signal(1, SIGKILL);
  const auto outcomes = job_.wait();
  for (const std::size_t rank : {0u, 2u})
    expect_end(outcomes[rank], 6, "for rank 1, which does not answer; rank 1 is the culprit");
  expect_nothing_written();
}

// Point 5: a worker killed mid-run.
TEST_F(Replays, SaysWhichRankWasKilled) {
  const std::string program = write(data_parallel(4, 40));
  start(4, {program, "--host", "-o", job_.path("measured.json"), "--repeats", "1000"});
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  job_.signal(2, SIGKILL);
  const auto outcomes = job_.wait();
  for (const std::size_t rank : {0u, 1u, 3u}) {
    expect_end(outcomes[rank], 6, "rank 2 (");
    EXPECT_THAT(outcomes[rank].err, EndsWith(") ended without a word\n"));
  }
  EXPECT_EQ(outcomes[2].code, 137);
  expect_nothing_written();
}

// Rank 2 takes 2.5 s for what it does alone, the others wait for it: longer than the patience of 1
// s, but nothing is wrong.
TEST_F(Replays, WaitsForARankThatIsLate) {
  fault_ = "late:2";
  const std::string program = write(data_parallel(3, 1));
  start(3, {program, "--host", "-o", job_.path("measured.json"), "--watchdog", "1"});
  const auto outcomes = job_.wait();
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcomes[0].err,
              AllOf(StartsWith("note: rank 0 has waited for 1."),
                    HasSubstr(" s while it prepares; last heard of was rank 2, which loads a "
                              "library\n")));
  EXPECT_THAT(outcomes[1].err, IsEmpty());
}

TEST_F(Replays, EndsAHangInPreparation) {
  fault_ = "stuck:1";
  const std::string program = write(data_parallel(3, 1));
  const auto begin = std::chrono::steady_clock::now();
  start(3, {program, "--host", "-o", job_.path("measured.json"), "--watchdog", "1"});
  const auto outcomes = job_.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2500));
  for (const auto& outcome : outcomes)
    expect_end(outcome, 6,
               "s: nobody waits in a communication: rank 0 is preparing, rank 1 is preparing, "
               "rank 2 is preparing");
  expect_nothing_written();
}

TEST_F(Replays, RefusesOneDeviceForTwoRanks) {
  const std::string program = write(data_parallel(3, 1));
  const auto run = [&](const std::string& of_last) {
    Job job;
    port_.clear();
    for (int rank = 0; rank < 3; ++rank) {
      auto variables = rank_of(rank, 3);
      variables["FAKE_DEVICE"] = rank == 2 ? of_last : "GPU-" + std::to_string(rank);
      job.start(FAKE_REPLAY, {program, "--host", "--verify"}, variables);
    }
    return job.wait();
  };
  for (const auto& outcome : run("GPU-2")) EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const auto& outcome : run("GPU-0")) {
    // Or what the first of them gave up for.
    EXPECT_THAT(outcome.code, AnyOf(2, 6));
    EXPECT_EQ(lines_in(outcome.err), 1U) << outcome.err;
    EXPECT_THAT(outcome.err,
                HasSubstr("ranks 0 and 2 take the same device, GPU-0: start as many ranks"));
  }
}

TEST_F(Replays, RefusesARankOfAnotherJob) {
  const std::string program = write(data_parallel(2, 1));
  for (int rank = 0; rank < 2; ++rank) {
    auto variables = rank_of(rank, 2);
    variables["FORESHARD_TOKEN"] = "job " + std::to_string(rank);
    job_.start(FAKE_REPLAY, {program, "--host", "--verify", "--watchdog", "1"}, variables);
  }
  const auto outcomes = job_.wait();
  expect_end(outcomes[1], 2, "rank 1 belongs to another job than the rank 0 that it found");
  expect_end(outcomes[0], 2, "rank 1 did not come to 'begin' within 1.00 s");
}

// Inside a collective nobody can be told to stop: the watchdog ends the process.
TEST_F(Replays, EndsWhereTheExecutorIsDeaf) {
  fault_ = "deaf:-1";
  const std::string program = write(data_parallel(2, 40));
  start(2, {program, "--host", "-o", job_.path("measured.json"), "--repeats", "1000", "--watchdog",
            "3"});
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  const auto begin = std::chrono::steady_clock::now();
  job_.signal(0, SIGKILL);
  const auto outcomes = job_.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  expect_end(outcomes[1], 6, "rank 0 (");
  expect_nothing_written();
}

TEST_F(Replays, SaysThatItWasInterrupted) {
  for (const auto& [signal, name] : std::vector<std::pair<int, std::string>>{
           {SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}}) {
    Job job;
    port_.clear();
    const std::string program = write(data_parallel(3, 40));
    for (int rank = 0; rank < 3; ++rank)
      job.start(FAKE_REPLAY,
                {program, "--host", "-o", job_.path("measured.json"), "--repeats", "1000"},
                rank_of(rank, 3));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (std::size_t rank = 0; rank < 3; ++rank) job.signal(rank, signal);
    const auto outcomes = job.wait();
    for (const auto& outcome : outcomes) {
      EXPECT_THAT(outcome.code, AnyOf(130, 6)) << outcome.err;
      EXPECT_EQ(lines_in(outcome.err), 1U) << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("interrupted by " + name));
    }
    expect_nothing_written();
  }
}

TEST_F(Replays, TellsAllRanksOfAnOutOfMemory) {
  fault_ = "memory:1";
  const std::string program = write(data_parallel(3, 1));
  start(3, {program, "--host", "-o", job_.path("measured.json")});
  const auto outcomes = job_.wait();
  const std::string what = "out of memory for 'gemm': 3.00 GiB asked for, 1.00 GiB free";
  expect_end(outcomes[1], 3, "rank 1: " + what);
  for (const std::size_t rank : {0u, 2u}) expect_end(outcomes[rank], 6, ") gave up: " + what);
  expect_nothing_written();
}

TEST_F(Replays, FailsOnAllRanksWhereOneVerifiesWrongNumbers) {
  fault_ = "wrong:2";
  const std::string program = write(data_parallel(3, 1));
  start(3, {program, "--host", "--verify"});
  const auto outcomes = job_.wait();
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_EQ(outcomes[0].out,
            "verified 9 communications of 3 ranks, 36 elements: wrong\n"
            "  all_reduce grads #0 on rank 2: element 17 is 5, not 6\n");
}

TEST_F(Replays, SaysThatThereIsNoGpu) {
  const std::string program = write(data_parallel(2, 1));
  start(2, {program, "--verify"});
  for (const auto& outcome : job_.wait()) {
    // Or what the first of them gave up for.
    EXPECT_THAT(outcome.code, AnyOf(2, 6));
    EXPECT_EQ(lines_in(outcome.err), 1U);
    EXPECT_THAT(outcome.err, HasSubstr("no GPU: this is a test"));
  }
}

// --- bad input ------------------------------------------------------------------------------

TEST_F(Replays, RefusesAnotherNumberOfRanks) {
  const std::string program = write(data_parallel(2, 1));
  start(3, {program, "--host", "--verify"});
  for (const auto& outcome : job_.wait())
    expect_end(outcome, 2,
               "the Program has 2 ranks, but 3 were started (RANK, WORLD_SIZE, LOCAL_RANK)");
}

TEST_F(Replays, RefusesToRunSeveralRanksWithoutALauncher) {
  job_.start(FAKE_REPLAY, {write(data_parallel(2, 1)), "--host", "--verify"}, {});
  expect_end(job_.wait()[0], 2,
             "the Program has 2 ranks, but 1 was started (no launcher's variables are set");
}

TEST_F(Replays, RefusesAProgramOfAnotherVersion) {
  std::string text = program::to_json(data_parallel(2, 1));
  text.replace(text.find("program/1"), 9, "program/9");
  const std::string path = job_.path("program.json");
  ASSERT_TRUE(write_file(path, text).ok());
  start(2, {path, "--host", "--verify"});
  for (const auto& outcome : job_.wait())
    expect_end(outcome, 2, "schema: 'foreshard.program/9' cannot be read");
}

TEST_F(Replays, RefusesADeadlock) {
  Program program = data_parallel(2, 1);
  program.blocks[0].tasks[0] = program.blocks[0].tasks[1];
  program.blocks[0].tasks[0].name = "other";
  program.blocks.push_back({"swapped", {program.blocks[0].tasks[1], program.blocks[0].tasks[0]}});
  program.roles = {{.name = "first", .ranks = {0}, .calls = {{.block = program::BlockId(0)}}},
                   {.name = "second", .ranks = {1}, .calls = {{.block = program::BlockId(1)}}}};
  start(2, {write(program), "--host", "--verify"});
  for (const auto& outcome : job_.wait()) expect_end(outcome, 2, "deadlock: ");
}

TEST_F(Replays, TellsTheOthersThatAFileIsMissing) {
  const std::string program = write(data_parallel(3, 1));
  for (int rank = 0; rank < 3; ++rank)
    job_.start(FAKE_REPLAY, {rank == 1 ? job_.path("absent.json") : program, "--host", "--verify"},
               rank_of(rank, 3));
  const auto outcomes = job_.wait();
  expect_end(outcomes[1], 2, "absent.json: cannot open: No such file or directory");
  for (const std::size_t rank : {0u, 2u})
    expect_end(outcomes[rank], 6, "absent.json: cannot open: No such file or directory");
}

TEST_F(Replays, RefusesDifferentProgramsOnDifferentRanks) {
  const std::string one = write(data_parallel(2, 1)), other = write(data_parallel(2, 2), "2.json");
  job_.start(FAKE_REPLAY, {one, "--host", "--verify"}, rank_of(0, 2));
  job_.start(FAKE_REPLAY, {other, "--host", "--verify"}, rank_of(1, 2));
  const auto outcomes = job_.wait();
  expect_end(outcomes[1], 2, "2.json: is another Program (");
  expect_end(outcomes[0], 6, "2.json: is another Program (");
}

TEST_F(Replays, RefusesDifferentOptionsOnDifferentRanks) {
  const std::string program = write(data_parallel(2, 1));
  job_.start(FAKE_REPLAY, {program, "--host", "--verify", "--watchdog", "2"}, rank_of(0, 2));
  job_.start(FAKE_REPLAY, {program, "--host", "--verify", "--watchdog", "2", "--repeats", "3"},
             rank_of(1, 2));
  const auto outcomes = job_.wait();
  expect_end(outcomes[1], 2, "was started with another Program, other options");
  expect_end(outcomes[0], 2, "rank 1 did not come to 'begin' within 2.00 s");
}

TEST_F(Replays, RefusesWhereTheFileCannotBeWritten) {
  const std::string program = write(data_parallel(1, 1));
  job_.start(FAKE_REPLAY, {program, "--host", "-o", job_.path("nowhere/measured.json")}, {});
  expect_end(job_.wait()[0], 2, "there is no folder");
}

// --- one rank of many -----------------------------------------------------------------------

class OneRank : public Replays {
 protected:
  measure::Arrivals arrivals() const {
    return {.program = "small",
            .fingerprint = measure::fingerprint_of(program_),
            .rank = 5,
            .seconds = {std::nullopt, 1_ms}};
  }
  RankOutcome run(const measure::Arrivals& of) {
    Job job;
    const std::string path = job_.path("arrivals.json");
    EXPECT_TRUE(write_file(path, to_json(of)).ok());
    job.start(FAKE_REPLAY,
              {write(program_), "--as-rank", "5", "--arrivals", path, "-o", "/dev/null"}, {});
    return job.wait()[0];
  }
  Program program_ = data_parallel(8, 1);
};

TEST_F(OneRank, GetsAsFarAsTheExecutor) {
  expect_end(run(arrivals()), 2, "no GPU");
}

TEST_F(OneRank, RefusesArrivalsOfSomethingElse) {
  auto other = arrivals();
  other.rank = 4;
  expect_end(run(other), 2, "arrivals.json: is of rank 4, not of rank 5");
  other = arrivals();
  other.fingerprint = "0123456789abcdef";
  expect_end(run(other), 2, "arrivals.json: is of another Program ('small', 0123456789abcdef)");
  other = arrivals();
  other.seconds.push_back(2_ms);
  expect_end(run(other), 2, "arrivals.json: has 3 instances, but rank 5 has 2");
  other = arrivals();
  other.seconds[1] = std::nullopt;
  expect_end(run(other), 2,
             "arrivals.json: seconds[1] is null, but instance 1 is all_reduce grads");
}

TEST_F(Replays, ChecksWithoutRunning) {
  job_.start(FAKE_REPLAY, {write(data_parallel(8, 2)), "--check"}, {});
  const auto outcome = job_.wait()[0];
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "rank 0 of 8: 4 tasks, 1 communicators\n");
}

}  // namespace
}  // namespace foreshard::replay
