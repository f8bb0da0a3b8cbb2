// foreshard-replay --host under mpirun: strategies of a small fp32 model, lowered here, verified on
// 2 and 4 processes.
#include <ostream>

#include "tests/strategies/graph/written_model.h"
#include "tests/test.h"
#include "tests/validate/replay/job.h"

#include "strategies/program/ir/json.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::replay::mpi_test {

Strategy fp32(std::int64_t tensor, std::int64_t pipeline, std::int64_t data) {
  Strategy strategy;
  strategy.tensor_parallel = tensor;
  strategy.pipeline_parallel = pipeline;
  strategy.data_parallel = data;
  strategy.global_batch = 4 * data;
  strategy.precision = DType::kFp32;
  return strategy;
}

std::string program_of(const Strategy& strategy) {
  const Model model =
      written_model("name: small, layers: 4, hidden: 64, heads: 4, vocabulary: 500, sequence: 48");
  const auto program = value_of(lower::lower(model, strategy, {.launch_time = 1_us}));
  EXPECT_EQ(message_of(program::verify(program)), "accepted");
  return program::to_json(program);
}

class HostReplay : public testing::Test {
 protected:
  // `ranks` processes of `binary` on the Program, which is the word after `before`.
  RankOutcome run(std::int64_t ranks, const std::string& binary, const std::string& program,
                  const std::vector<std::string>& after) {
    const std::string file = job_.path("program.json");
    std::ofstream(file) << program;
    Job::Words words{
        "--allow-run-as-root", "--oversubscribe", "-n", std::to_string(ranks), binary, file};
    words.insert(words.end(), after.begin(), after.end());
    job_.start(FORESHARD_MPIEXEC, words, {});
    return job_.wait(std::chrono::seconds(180)).front();
  }
  Job job_;
};

struct Case {
  std::string name;
  Strategy strategy;
};
std::ostream& operator<<(std::ostream& out, const Case& of) {
  return out << of.name;
}

std::vector<Case> cases() {
  Strategy interleaved = fp32(1, 2, 2);
  interleaved.schedule = "interleaved";
  interleaved.virtual_stages = 2;
  Strategy zero3 = fp32(1, 1, 4);
  zero3.zero_stage = 3;
  Strategy zero1 = fp32(1, 1, 2);
  zero1.zero_stage = 1;
  Strategy sequence = fp32(2, 1, 1);
  sequence.sequence_parallel = true;
  return {{"dp4", fp32(1, 1, 4)},     {"tp2_dp2", fp32(2, 1, 2)},
          {"pp2_dp2", fp32(1, 2, 2)}, {"pp2_dp2_interleaved", interleaved},
          {"zero3_dp4", zero3},       {"zero1_dp2", zero1},
          {"tp2_sequence", sequence}};
}

class HostReplayOf : public HostReplay, public testing::WithParamInterface<Case> {};

TEST_P(HostReplayOf, DeliversTheRightNumbers) {
  const Strategy& strategy = GetParam().strategy;
  const RankOutcome outcome =
      run(strategy.devices(), FORESHARD_REPLAY, program_of(strategy), {"--host", "--verify"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr(" communications of " + std::to_string(strategy.devices()) + " ranks, "));
  EXPECT_THAT(outcome.out, HasSubstr("all as expected"));
}

INSTANTIATE_TEST_SUITE_P(Strategies, HostReplayOf, testing::ValuesIn(cases()),
                         [](const auto& of) { return of.param.name; });

TEST_F(HostReplay, Measures) {
  const std::string file = job_.path("measured.json");
  const RankOutcome outcome =
      run(2, FORESHARD_REPLAY, program_of(fp32(1, 2, 1)), {"--host", "--repeats", "3", "-o", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = Job::text_of(file);
  EXPECT_THAT(text, HasSubstr("\"backend\":\"host\""));
  EXPECT_THAT(text, HasSubstr("\"mpi\":"));
}

// Rank 0 gives every operation another one's numbers: the other rank finds sums that are wrong.
TEST_F(HostReplay, FindsWrongOperations) {
  const RankOutcome outcome =
      run(2, FORESHARD_HOST_RANK, program_of(fp32(1, 1, 2)), {"--verify", "--spoil", "ordinal"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr(" on rank 1: element "));
}

// A launch of fewer processes than the Program has ranks says so, on whatever way it is launched.
TEST_F(HostReplay, NamesTheRanksThatAreMissing) {
  const RankOutcome outcome =
      run(2, FORESHARD_REPLAY, program_of(fp32(1, 1, 4)), {"--host", "--verify"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("4 ranks"));
}

// Out of memory before anything runs: the machine has no 3 PB.
TEST_F(HostReplay, NamesWhatDoesNotFit) {
  const auto program = value_of(program::program_from_json(program_of(fp32(1, 1, 2))));
  program::Program large = program;
  large.roles[0].memory.push_back({.kind = program::MemoryKind::kOptimizer, .bytes = 3000_TB});
  const RankOutcome outcome =
      run(2, FORESHARD_REPLAY, program::to_json(large), {"--host", "--verify"});
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("out of memory"));
  EXPECT_THAT(outcome.err, HasSubstr("static memory"));
}

}  // namespace foreshard::replay::mpi_test
