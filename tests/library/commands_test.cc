// The library runs the commands: what the program prints, byte for byte, from any thread, and it
// neither ends nor disturbs the process that it is in.
#include <atomic>
#include <foreshard/foreshard.h>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "tests/cli/program.h"
#include "tests/seeds.h"

namespace library_test {

using foreshard::Answer;
using foreshard::Failure;
using foreshard::Stop;
using foreshard::Words;
using testing::HasSubstr;
using testing::SizeIs;

std::string quoted(const Words& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "'" : " '") + word + "'";
  return line;
}

// Calls of all commands that end at once, with what may be drawn for them.
class Calls {
 public:
  explicit Calls(std::uint64_t seed) : random_(seed) {}

  Words draw() {
    const std::string study = one({"gpt-1.7b-a100-8", "moe-layer-h100-8", "host-dp2"});
    const std::string cluster = one({"two-dgx-a100", "two-dgx-h100", "one-dgx-a100"});
    const std::string format = one({"json", "text"});
    const std::string batch = "strategy.global_batch=" + one({"32", "64", "7", "many"});
    const std::string layout = one({"x=16 [x, -]", "x=16 [-, x]", "x=8 @0-7 [x, -]", "y [x]"});
    const std::vector<Words> calls{
        {"simulate", study, "--set", batch, "--format", one({"json", "text", "csv"})},
        {"simulate", study, "--sensitivity", "--format", format},
        {"simulate", "--cluster", cluster, "--model", "gpt-1.7b", "--strategy",
         "{data_parallel: 8, global_batch: " + one({"64", "8", "12"}) + "}", "--format", format},
        {"simulate", study, "--no-such-option"},
        {"simulate", "no-such-study"},
        {"search", "gpt-1.7b-a100-8", "--level", one({"0", "1", "4"}), "--simulate", "1",
         "--certify", "0", "--front", "1", "--format", format},
        {"compare", study, "--set-b", batch, "--format", format},
        {"reshard", "--tensor", "bf16[8192,8192]", "--from", layout, "--to", "x=16 [-, x]",
         "--cluster", cluster, "--format", format},
        {"topology", "show", cluster, "--format", one({"json", "text", "dot"})},
        {"topology", "check", cluster, "--format", format},
        {"topology", "collectives", cluster, "--sizes", one({"1MiB", "1KiB:1MiB", "?"}), "--format",
         format},
        {"catalog", one({"models", "clusters", "operators", "schedules"}), "--format", format},
        {"catalog", "show", one({"H100-SXM", "gpt-1.7b", "H100"})},
        {"schema", one({"study", "foreshard.search/1", "prediction", "nothing"})},
        {"export", study, "--as", one({"megatron", "deepspeed", "nothing"})},
        {"export", study, "--program", "-"},
        {"replan", "gpt-1.7b-a100-8", "--set", "cluster.nodes=2", "--set",
         "cluster.fabric={kind: single-switch}", "--level", "0", "--simulate", "1", "--certify",
         "0", "--down", one({"node1", "node7"}), "--format", format},
        {"advise", "host-dp2", "--top", one({"1", "3", "0"}), "--format", format},
        {"explain", one({"nothing.json", "gpt-1.7b-a100-8"})},
        {"check", FORESHARD_SOURCE_DIR "/configs/studies/gpt-1.7b-a100-8.yaml"},
        {"calibrate", "--collectives", "no-such-file.csv"},
        {"version", "--format", format},
        {"help", one({"simulate", "search", "topology"})},
        {"completion", one({"bash", "zsh", "fish"})},
        {one({"simulat", "topology", "--nothing"})},
    };
    return calls[std::uniform_int_distribution<std::size_t>(0, calls.size() - 1)(random_)];
  }

 private:
  std::string one(const std::vector<std::string>& of) {
    return of[std::uniform_int_distribution<std::size_t>(0, of.size() - 1)(random_)];
  }

  std::mt19937_64 random_;
};

std::string told(const Answer& answer) {
  std::string text;
  for (const foreshard::Message& one : answer.messages) {
    const bool tells = one.text.find("error:") != std::string::npos;
    text += (one.is_error && !tells ? "error: " : "") + one.text + "\n";
  }
  return text;
}

class Drawn : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Calls, Drawn,
                         testing::Range(std::uint64_t{0},
                                        foreshard::seeds<std::uint64_t>(12, 200)));

TEST_P(Drawn, AnswersAsTheProgram) {
  const Words words = Calls(GetParam()).draw();
  const auto expected = foreshard::cli::foreshard(quoted(words));
  const Answer answer = foreshard::run(words);
  EXPECT_EQ(answer.code, expected.code) << quoted(words);
  EXPECT_EQ(answer.text, expected.out) << quoted(words);
  EXPECT_EQ(told(answer), expected.err) << quoted(words);
}

TEST(Commands, HaveFunctions) {
  const foreshard::Study study{.file = "gpt-1.7b-a100-8"};
  const auto same = [](const Answer& answer, const std::string& command) {
    const auto expected = foreshard::cli::foreshard(command);
    EXPECT_EQ(answer.text, expected.out) << command;
    EXPECT_EQ(answer.code, expected.code) << command;
    EXPECT_EQ(expected.err, "") << command;
  };
  same(foreshard::compare(study, {}, {"--set-b", "strategy.zero_stage=1"}),
       "compare gpt-1.7b-a100-8 --set-b strategy.zero_stage=1 --format json");
  same(foreshard::advise(study), "advise gpt-1.7b-a100-8 --format json");
  same(foreshard::topology({"show", "two-dgx-h100"}), "topology show two-dgx-h100 --format json");
  same(foreshard::catalogue(), "catalog --format json");
  same(foreshard::catalogue({"show", "H100-SXM"}), "catalog show H100-SXM");
  same(foreshard::export_launch(study, "megatron"), "export gpt-1.7b-a100-8 --as megatron");
  same(foreshard::schema("study"), "schema study");

  const foreshard::TemporaryFolder folder;
  const std::string sweep =
      folder
          .write("sweep.yaml",
                 "study: gpt-1.7b-a100-8\naxes: [{key: strategy.micro_batch, values: [1, 2]}]\n")
          .string();
  same(foreshard::sweep(sweep), "study '" + sweep + "' --format json");
  same(foreshard::check(sweep), "check '" + sweep + "'");
  const auto found =
      foreshard::search(study, {.level = 0, .top = 2, .simulate = 2, .certify = 0}).json;
  const std::string path = folder.write("found.json", found).string();
  same(foreshard::explain(path), "explain '" + path + "' --format json");
}

TEST(Commands, AnswerEightThreadsAtOnce) {
  const Words words{
      "search", "gpt-1.7b-a100-8", "--level", "0",        "--simulate", "2", "--certify",
      "0",      "--front",         "1",       "--format", "json"};
  const std::string alone = foreshard::run(words).text;
  const std::string wrong = foreshard::run({"simulate", "nothing"}).messages.at(0).text;
  std::vector<std::future<Answer>> answers;
  answers.reserve(8);
  for (int i = 0; i < 8; ++i)
    answers.push_back(std::async(std::launch::async, [&, i] {
      return foreshard::run(i % 2 == 0 ? words : Words{"simulate", "nothing"});
    }));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Answer answer = answers[i].get();
    if (i % 2 == 0)
      EXPECT_EQ(answer.text, alone);
    else
      EXPECT_EQ(answer.messages.at(0).text, wrong);
  }
}

TEST(Commands, ReadWhatStandsForStdin) {
  const Answer answer = foreshard::run({"simulate", "-"}, {.input = "cluster: [\n"});
  EXPECT_EQ(answer.code, 2);
  ASSERT_THAT(answer.messages, SizeIs(1));
  EXPECT_EQ(answer.messages[0].file, "stdin");
  EXPECT_GT(answer.messages[0].line, 0);
  // It is not that of the process, nor of the call before.
  const Answer other = foreshard::run({"simulate", "-"},
                                      {.input = "cluster: two-dgx-a100\nmodel: gpt-1.7b\nstrategy: "
                                                "{data_parallel: 16, global_batch: 64}\n"});
  EXPECT_EQ(other.code, 0);
}

TEST(Commands, TellThePlaceOfAFault) {
  const foreshard::TemporaryFolder folder;
  const std::string path =
      folder
          .write("study.yaml",
                 "cluster: two-dgx-h100\nmodel: gpt-1.7b\nstrategy:\n  tensor_paralel: 2\n")
          .string();
  try {
    foreshard::predict({.file = path});
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.first().file, path);
    EXPECT_EQ(failure.first().line, 4);
    EXPECT_EQ(failure.first().column, 3);
    EXPECT_THAT(failure.first().remedy, HasSubstr("did you mean 'tensor_parallel'?"));
    EXPECT_THAT(failure.what(), HasSubstr(failure.first().remedy));
  }
}

TEST(Commands, EndWhenTheCallerWants) {
  const foreshard::Study study{.file = "gpt-1.7b-a100-8"};
  const foreshard::Hooks finish{.stop = [] { return Stop::kFinish; }};
  EXPECT_TRUE(foreshard::search(study, {.level = 1}, FORESHARD_PACKAGE_CATALOGUE, finish).partial);
  const foreshard::Study large{.file = "gpt3-175b-a100-1024"};
  EXPECT_THROW(foreshard::predict(large, {}, FORESHARD_PACKAGE_CATALOGUE, finish),
               foreshard::Cancelled);
  const foreshard::Hooks now{.stop = [] { return Stop::kNow; }};
  EXPECT_THROW(foreshard::search(study, {.level = 1}, FORESHARD_PACKAGE_CATALOGUE, now),
               foreshard::Cancelled);
}

TEST(Commands, OutliveAFailedCheck) {
  const foreshard::Hooks faulty{.stop = [] {
    FORESHARD_CHECK(1 == 2);
    return Stop::kNo;
  }};
  const foreshard::Study large{.file = "gpt3-175b-a100-1024"};
  EXPECT_THROW(foreshard::predict(large, {}, FORESHARD_PACKAGE_CATALOGUE, faulty),
               foreshard::InternalError);
  const Answer answer = foreshard::run(Words{"search", "gpt-1.7b-a100-8"}, faulty);
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.messages.back().text, HasSubstr("1 == 2 does not hold"));
  EXPECT_TRUE(foreshard::predict({.file = "gpt-1.7b-a100-8"}).feasible);
}

TEST(Commands, TellHowFarTheyAre) {
  std::atomic<std::int64_t> most = 0;
  foreshard::search({.file = "gpt-1.7b-a100-8"}, {.level = 0, .simulate = 2, .certify = 0},
                    FORESHARD_PACKAGE_CATALOGUE,
                    {.progress = [&](std::string_view what, std::int64_t done, std::int64_t) {
                      EXPECT_EQ(what, "simulating");
                      if (done > most) most = done;
                    }});
  EXPECT_GE(most, 2);
}

TEST(Commands, StartNoProcessWhereNoneMayBeStarted) {
  const foreshard::Hooks alone{.may_fork = false};
  const auto simgrid =
      foreshard::run({"simulate", "gpt-1.7b-a100-8", "--engine", "simgrid"}, alone);
  EXPECT_EQ(simgrid.code, 2);
  EXPECT_THAT(simgrid.messages.at(0).text, HasSubstr("simgrid"));
  const auto replay = foreshard::run({"replay", "host-dp2", "--host", "--verify"}, alone);
  EXPECT_EQ(replay.code, 2);
  EXPECT_THAT(replay.messages.at(0).text, HasSubstr("foreshard-replay"));
}

}  // namespace library_test
