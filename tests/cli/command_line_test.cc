// The commands as a person types them: help, and what each prints.
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli::command_line_test {

using nlohmann::json;

constexpr const char* kSmall = "configs/studies/gpt-1.7b-a100-8.yaml";

TEST(CommandLine, EveryCommandHasHelpWithAnExample) {
  for (const CommandInfo& command : commands()) {
    const Outcome outcome = foreshard(std::string(command.name) + " --help");
    EXPECT_EQ(outcome.code, 0) << command.name;
    EXPECT_THAT(outcome.out, HasSubstr("Example:")) << command.name;
    EXPECT_THAT(outcome.out, HasSubstr("foreshard " + std::string(command.name)));
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(Version, SaysWhatThisBuildIs) {
  const std::string line = foreshard("--version").out;
  EXPECT_THAT(foreshard("version").out, StartsWith(line));
  EXPECT_THAT(foreshard("version").out, StartsWith("foreshard "));
  EXPECT_EQ(json::parse(foreshard("version --format json").out)["schema"], "foreshard.version/1");
}

TEST(Schema, IsJsonForEveryKind) {
  for (const char* kind : {"study", "cluster", "communication", "device", "efficiency", "framework",
                           "graph", "model", "node", "strategy"}) {
    const Outcome outcome = foreshard(std::string("schema ") + kind);
    ASSERT_EQ(outcome.code, 0) << kind << outcome.err;
    // A type that others refer to, or that extends one of its own, stands under `definitions`.
    const json schema = json::parse(outcome.out);
    const json& object = schema.contains("properties") ? schema : schema["definitions"][kind];
    EXPECT_TRUE(object.contains("properties")) << kind;
  }
}

TEST(Schema, DescribesResultsByEitherName) {
  const Outcome outcome = foreshard("schema prediction");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(foreshard("schema foreshard.prediction/1").out, outcome.out);
  const json schema = json::parse(outcome.out);
  EXPECT_EQ(schema["properties"]["schema"]["const"], "foreshard.prediction/1");
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_EQ(schema["properties"]["step"]["properties"]["time_s"]["type"],
            json::parse(R"(["number", "null"])"));
  EXPECT_EQ(std::ranges::count(schema["required"], json("timing")), 0);  // described as "timing?"
  EXPECT_EQ(std::ranges::count(schema["required"], json("step")), 1);
  // `search` is a kind of file; its result has the longer name.
  EXPECT_NE(foreshard("schema search").out, foreshard("schema foreshard.search/1").out);
  EXPECT_THAT(foreshard("schema predicton").err, HasSubstr("did you mean 'prediction'?"));
}

TEST(Catalog, ListsAndShows) {
  const Outcome list = foreshard("catalog");
  EXPECT_THAT(list.out, HasSubstr("gpt3-175b"));
  EXPECT_THAT(list.out, HasSubstr("A100-SXM-80GB"));
  const Outcome show = foreshard("catalog show A100-SXM-80GB");
  EXPECT_EQ(show.code, 0) << show.err;
  EXPECT_THAT(show.out, HasSubstr("datasheet"));
  EXPECT_TRUE(json::parse(foreshard("catalog --format json").out)["entries"].contains("models"));
}

TEST(Catalog, EveryEntryReads) {
  const auto all = json::parse(foreshard("catalog --format json").out)["entries"];
  for (const char* folder :
       {"clusters", "communication", "frameworks", "graphs", "models", "strategies"}) {
    for (const auto& name : all[folder]) {
      const Outcome outcome = foreshard("catalog show '" + name.get<std::string>() + "'");
      EXPECT_EQ(outcome.code, 0) << name << outcome.err;
    }
  }
}

// The page's table is what the command prints.
TEST(Catalog, PrintsTheOperatorsAsDocumented) {
  const Outcome outcome = foreshard("catalog operators");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::ifstream page(FORESHARD_SOURCE_DIR "/docs/graph-format.md");
  std::stringstream text;
  text << page.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr(outcome.out));
  EXPECT_GT(json::parse(foreshard("catalog operators --format json").out)["operators"].size(), 40U);
}

// The all-to-all of expert parallelism, both ways.
TEST(Check, SaysWhatAGraphConverts) {
  const Outcome outcome = foreshard("check configs/graphs/moe-layer.yaml");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("#   slots: [-, S(data), -, -] -> [S(data), -, -, -]\n"
                                     "#   down: [S(data), -, -, -] -> [-, S(data), -, -]\n"));
}

// What check prints is a file of the same kind that reads back.
TEST(Check, EchoesAFileThatReadsBack) {
  const TemporaryFolder folder;
  for (const char* file :
       {"configs/frameworks/generic.yaml", "configs/strategies/gpt3-175b-1024.yaml",
        "configs/graphs/mlp.yaml", "configs/graphs/moe-layer.yaml"}) {
    const Outcome outcome = foreshard(std::string("check ") + file);
    ASSERT_EQ(outcome.code, 0) << file << outcome.err;
    const std::string echo = folder.write("echo.yaml", outcome.out).string();
    const Outcome again = foreshard("check '" + echo + "'");
    EXPECT_EQ(again.code, 0) << file << again.err;
  }
}

// A space of search has the keys of a strategy, but lists of values.
TEST(Check, TellsASpaceFromAStrategy) {
  const TemporaryFolder folder;
  const auto kind = [&](const std::string& text) {
    const Outcome outcome = foreshard("check '" + folder.write("file.yaml", text).string() + "'");
    return outcome.code == 0 ? outcome.out.substr(0, outcome.out.find('\n')) : outcome.err;
  };
  EXPECT_THAT(kind("tensor_parallel: [1, 2]\nmicro_batch: [1]\n"), HasSubstr("well-formed search"));
  EXPECT_THAT(kind("tensor_parallel:\n  - 1\nmicro_batch:\n  - 1\n"),
              HasSubstr("well-formed search"));
  EXPECT_THAT(kind("tensor_parallel: 2\nmicro_batch: 1\nglobal_batch: 8\n"),
              HasSubstr("well-formed strategy"));
  EXPECT_THAT(kind("tensor_parallel: 2\nmicro_batch: 1\n"), HasSubstr("'global_batch'"));
}

TEST(Topology, ShowsACluster) {
  for (const char* form : {"text", "json"}) {
    const Outcome outcome = foreshard(std::string("topology show two-dgx-a100 --format ") + form);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("A100-SXM-80GB")) << form;
  }
  EXPECT_THAT(foreshard("topology show two-dgx-a100 --format dot").out, StartsWith("graph "));
}

TEST(Export, TakesTheFileByItsUsualOption) {
  EXPECT_EQ(foreshard(std::string("export ") + kSmall + " -o -").out,
            foreshard(std::string("export ") + kSmall + " --program -").out);
}

TEST(Export, WritesTheProgram) {
  const Outcome outcome = foreshard(std::string("export ") + kSmall + " --program -");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["schema"], "foreshard.program/1");
}

TEST(Export, WritesTheStepPlanOfAGraphToo) {
  const Outcome outcome = foreshard("export configs/studies/moe-layer-h100-8.yaml --plan -");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("backward moe-layer, reducing"));
  EXPECT_THAT(outcome.out, HasSubstr("optimizer < 7"));
}

TEST(Simulate, PrintsTheContractTheSameTwice) {
  const std::string command = std::string("simulate ") + kSmall + " --format json";
  const Outcome first = foreshard(command);
  ASSERT_EQ(first.code, 0) << first.err;
  const auto prediction = json::parse(first.out);
  EXPECT_EQ(prediction["schema"], "foreshard.prediction/1");
  const double step = prediction["step"]["time_s"];
  EXPECT_GT(step, 0);
  EXPECT_LE(prediction["step"]["low_s"], step);
  EXPECT_GE(prediction["step"]["high_s"], step);
  double sum = 0;
  for (const auto& [part, time] : prediction["breakdown_s"].items()) sum += time.get<double>();
  EXPECT_NEAR(sum, step, 1e-9 * step);
  EXPECT_EQ(prediction["memory"]["fits"], true);
  for (const auto& input : prediction["inputs"])
    EXPECT_EQ(input["sha256"].get<std::string>().size(), 64U);
  EXPECT_EQ(foreshard(command).out, first.out);
}

TEST(Simulate, ReadsPartsAndOverrides) {
  const Outcome outcome = foreshard(
      "simulate --cluster two-dgx-a100 --model gpt-1.7b --strategy fsdp-64 "
      "--set strategy.data_parallel=16 --set strategy.global_batch=16 --format csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string header;
  std::string values;
  EXPECT_TRUE(std::getline(lines, header) && std::getline(lines, values));
  EXPECT_THAT(header, StartsWith("study,devices,time_s"));
  EXPECT_THAT(values, HasSubstr(",16,"));
}

// SimGrid knows flows alone: collectives go message by message unless that is forbidden.
TEST(Simulate, TakesMessagesForSimgridAndSaysSo) {
  const std::string small = "simulate " + std::string(kSmall) + " --set strategy.global_batch=8";
  const Outcome outcome = foreshard(small + " --engine simgrid --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["engine"]["name"], "simgrid");
  EXPECT_EQ(report["engine"]["granularity"], "stepwise");
  EXPECT_THAT(report["warnings"][0]["message"], HasSubstr("--granularity stepwise"));
  const json fluid = json::parse(foreshard(small + " --granularity stepwise --format json").out);
  EXPECT_NEAR(report["step"]["time_s"].get<double>(), fluid["step"]["time_s"].get<double>(),
              1e-6 * fluid["step"]["time_s"].get<double>());
}

TEST(Simulate, WritesATrace) {
  const TemporaryFolder folder;
  const std::string trace = (folder.path() / "trace.json").string();
  const Outcome outcome = foreshard(std::string("simulate ") + kSmall + " --trace '" + trace + "'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GT(json::parse(text_of(trace))["traceEvents"].size(), 100U);
}

// 7.5 billion parameters take 16 bytes or more each: 120 GB on every device, where 80 GB are.
TEST(Simulate, ExplainsWhatDoesNotFit) {
  const std::string too_large =
      "simulate --cluster two-dgx-a100 --model gpt-7.5b --strategy fsdp-64 "
      "--set strategy.data_parallel=16 --set strategy.global_batch=16 "
      "--set strategy.zero_stage=0";
  const Outcome outcome = foreshard(too_large);
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("Does not fit: rank 0 (stage 0) needs "));
  EXPECT_THAT(outcome.out, HasSubstr("zero_stage=3"));
  EXPECT_LT(outcome.out.find("zero_stage=3"), outcome.out.find("step time"));
  const auto prediction = json::parse(foreshard(too_large + " --format json").out);
  EXPECT_EQ(prediction["feasible"], false);
  EXPECT_EQ(prediction["memory"]["fits"], false);
}

constexpr const char* kInlineModel =
    "'{name: small, layers: 8, hidden: 1024, heads: 16, vocabulary: 1000, sequence: 512}'";

// What the reports of two calls say, apart from the names of files.
json step_of(const std::string& arguments) {
  const Outcome outcome = foreshard("simulate " + arguments + " --format json");
  EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
  return outcome.code == 0 ? json::parse(outcome.out)["step"] : json();
}

TEST(Simulate, TakesAStrategyFromSetAlone) {
  const std::string parts = "--cluster two-dgx-a100 --model gpt-1.7b ";
  EXPECT_EQ(step_of(parts + "--set strategy.data_parallel=16 --set strategy.global_batch=16"),
            step_of(parts + "--strategy '{data_parallel: 16, global_batch: 16}'"));
}

TEST(Simulate, ReadsModelsFromTheCommandLineStdinAndFilesWithoutASuffix) {
  const TemporaryFolder folder;
  const std::string text =
      "{name: small, layers: 8, hidden: 1024, heads: 16, vocabulary: 1000, sequence: 512}\n";
  const std::string plain = folder.write("plain", text).string();
  const std::string rest =
      " --cluster two-dgx-a100 --strategy '{data_parallel: 16, global_batch: 16}'";
  const json expected = step_of(std::string("--model ") + kInlineModel + rest);
  EXPECT_EQ(step_of("--model '" + plain + "'" + rest), expected);
  EXPECT_EQ(step_of("--model -" + rest + " <'" + plain + "'"), expected);
  const Outcome empty = foreshard("simulate - <'" + folder.write("empty", "").string() + "'");
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("stdin:1:1: error: "));
}

TEST(Simulate, ReadsStudiesFromStdinAndTheCatalogue) {
  const json expected = step_of(kSmall);
  EXPECT_EQ(step_of("gpt-1.7b-a100-8"), expected);
  EXPECT_EQ(step_of(std::string("- <") + kSmall), expected);
  EXPECT_THAT(foreshard("simulate gpt-1.7b-a100-9").err, HasSubstr("did you mean"));
}

TEST(Simulate, ReadsAHuggingFaceFolder) {
  const TemporaryFolder folder;
  const std::string config =
      folder.write("tiny/config.json", R"({"model_type": "llama", "num_hidden_layers": 2})")
          .string();
  const std::string rest =
      " --cluster two-dgx-a100 --strategy '{data_parallel: 16, global_batch: 16}'";
  const json expected = step_of("--model '" + config + "'" + rest);
  EXPECT_EQ(step_of("--model '" + (folder.path() / "tiny").string() + "'" + rest), expected);
  EXPECT_EQ(step_of("--model -" + rest + " <'" + config + "'"), expected);
}

// Whoever adopts foreshard has folders called models and nodes, too.
TEST(Check, TheKeysOfAFileDecideBeforeItsFolder) {
  const TemporaryFolder folder;
  const std::string cluster = folder
                                  .write("nodes/c.yaml",
                                         "name: c\nnode: dgx-h100\nnodes: 2\n"
                                         "fabric: {kind: single-switch}\n")
                                  .string();
  const std::string study =
      folder
          .write("models/exp/study.yaml",
                 "cluster: {extends: two-dgx-h100, name: c}\nmodel: llama3-8b\n"
                 "strategy: {data_parallel: 16, global_batch: 16, zero_stage: 3}\n")
          .string();
  EXPECT_THAT(foreshard("check '" + cluster + "'").out, HasSubstr("is a well-formed cluster"));
  EXPECT_EQ(foreshard("topology show '" + cluster + "'").code, 0);
  EXPECT_THAT(foreshard("check '" + study + "'").out, HasSubstr("is a well-formed study"));
  EXPECT_EQ(foreshard("simulate '" + study + "'").code, 0);
}

TEST(Check, ReadsAHuggingFaceConfig) {
  const TemporaryFolder folder;
  const std::string config = folder.write("c/config.json", R"({"model_type": "llama"})").string();
  const Outcome outcome = foreshard("check '" + config + "' --set sequence=4096");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# parameters  6738415616"));
  const std::string echo = folder.write("echo.yaml", outcome.out).string();
  const Outcome again = foreshard("check '" + echo + "'");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("is a well-formed model"));
  const std::string other = folder.write("o/config.json", R"({"model_type": "roberta"})").string();
  EXPECT_THAT(foreshard("check '" + other + "'").err,
              HasSubstr("'roberta' with a bidirectional encoder, which is not modelled"));
}

// Sizes that follow from others are those that are used, and the file is of the same model.
TEST(Check, PrintsTheSizesOfAModelThatAreUsed) {
  const TemporaryFolder folder;
  const std::string model = folder
                                .write("m.yaml",
                                       "name: m\nlayers: 2\nhidden: 96\nheads: 6\n"
                                       "vocabulary: 100\nsequence: 64\n")
                                .string();
  const Outcome outcome = foreshard("check '" + model + "'");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\nkv_heads: 6\nhead_dim: 16\nffn: 384\n"),
                                 HasSubstr("is a well-formed model")));
  const std::string echo = folder.write("echo.yaml", outcome.out).string();
  const std::string rest =
      " --cluster two-dgx-a100 --strategy '{data_parallel: 16, global_batch: 16}'";
  EXPECT_EQ(step_of("--model '" + echo + "'" + rest), step_of("--model '" + model + "'" + rest));
  EXPECT_THAT(foreshard("catalog show gpt3-175b").out, HasSubstr("\nffn: 49152\n"));
  EXPECT_THAT(foreshard("check configs/studies/gpt-1.7b-a100-8.yaml").out,
              Not(HasSubstr(" ffn: 0\n")));
}

TEST(Help, IsACommandToo) {
  EXPECT_EQ(foreshard("help").out, foreshard("--help").out);
  EXPECT_EQ(foreshard("help simulate").out, foreshard("simulate --help").out);
  EXPECT_EQ(foreshard("help topology show").out, foreshard("topology show --help").out);
  EXPECT_THAT(foreshard("help simulat").err, HasSubstr("did you mean 'simulate'?"));
}

}  // namespace foreshard::cli::command_line_test
