// The commands as a person types them: help, mistakes, and what each prints.
#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "cli/command.h"
#include "tests/cli/program.h"

namespace foreshard::cli {
namespace command_line_test {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kSmall = "configs/studies/gpt-1.7b-a100-8.yaml";
constexpr const char* kSmallPath = FORESHARD_SOURCE_DIR "/configs/studies/gpt-1.7b-a100-8.yaml";

TEST(CommandLine, EveryCommandHasHelpWithAnExample) {
  for (const CommandInfo& command : commands()) {
    const Outcome outcome = foreshard(std::string(command.name) + " --help");
    EXPECT_EQ(outcome.code, 0) << command.name;
    EXPECT_THAT(outcome.out, HasSubstr("Example:")) << command.name;
    EXPECT_THAT(outcome.out, HasSubstr("foreshard " + std::string(command.name)));
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(CommandLine, MistakesAreUsageErrorsWithTheNearestName) {
  const struct {
    const char* arguments;
    const char* message;
    const char* help;
  } cases[] = {
      {"", "a command is missing", "use 'simulate'"},
      {"simulat", "unknown command 'simulat'", "did you mean 'simulate'?"},
      {"zzz", "unknown command 'zzz'", "use 'simulate'"},
      {"simulate --formt json", "unknown option '--formt'", "did you mean '--format'?"},
      {"simulate --formt=json", "unknown option '--formt=json'", "did you mean '--format'?"},
      {"simulate --format jsn", "there is no 'jsn'", "did you mean 'json'?"},
      {"simulate --engine fluit", "--engine", "fluid"},
      {"simulate", "give a study", ""},
      {"simulate a.yaml b.yaml", "unexpected argument 'b.yaml'", "foreshard simulate --help"},
      {"simulate configs/studies/gpt-1.7b-a100-8.yaml --set tensor", "--set tensor", "KEY=VALUE"},
      {"simulate a.yaml --tp 8", "unknown option '--tp'",
       "did you mean '--set strategy.tensor_parallel=8'?"},
      {"simulate a.yaml --global-batch=64", "unknown option '--global-batch=64'",
       "did you mean '--set strategy.global_batch=64'?"},
      {"simulate a.yaml --sequence-parallel", "unknown option '--sequence-parallel'",
       "did you mean '--set strategy.sequence_parallel=true'?"},
      {"simulate a.yaml --layers 12 --format json", "unknown option '--layers'",
       "did you mean '--set model.layers=12'?"},
      {"simulate --cluster two-dgx-a100", "missing: --model, --strategy", "--set strategy."},
      {"topology", "a command is missing", "use 'show'"},
      {"topology sow x", "'sow'", "did you mean 'show'?"},
      {"catalog modle", "modle", "did you mean 'model'?"},
      {"catalog show H100-SXN", "H100-SXN", "did you mean 'H100-SXM'?"},
      {"schema modle", "modle", "did you mean 'model'?"},
      {"check configs/studies/gpt-1.7b-a100-8.yaml --kind studdy", "studdy",
       "did you mean 'study'?"},
      {"--configs /nonexistent version", "/nonexistent", ""},
      {"export configs/studies/gpt-1.7b-a100-8.yaml", "--program", ""},
      {"export configs/studies/host-dp2.yaml --program - --rank 1",
       "--rank applies only with --arrivals", "add --arrivals FILE"},
      {"export configs/studies/host-dp2.yaml --replay-bundle /tmp/b", "needs no study",
       "--program FILE"},
      {"export configs/studies/host-dp2.yaml --program - --arrivals -",
       "--program and --arrivals both name '-'", ""},
      {"export configs/studies/host-dp2.yaml --plan - --arrivals -",
       "--plan and --arrivals both name '-'", ""},
      {"simulate configs/studies/host-dp2.yaml --trace -", "a time line goes to a file", ""},
      {"simulate configs/studies/host-dp2.yaml -o /tmp/x/../x.json --trace /tmp/x.json",
       "both name '/tmp/x/../x.json'", "its own file"},
      {"export --set a=1 --replay-bundle /tmp/b", "needs no study, but --set was given", ""},
      {"replay dp2.json --host --verify --cluster host-2", "--cluster applies only to a study", ""},
      {"replay dp2.json --host --verify --program p.json", "--program applies only to a study", ""},
  };
  for (const auto& [arguments, message, help] : cases) {
    const Outcome outcome = foreshard(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(help)) << arguments;
  }
}

// What newcomers type, and what they are told to type instead.
TEST(CommandLine, NewcomersAreToldWhatToType) {
  const TemporaryFolder folder;
  const std::string study = folder.write("study.yaml", text_of(kSmallPath)).string();
  const std::string model =
      folder.write("model.json", R"({"model_type": "llama", "num_hidden_layers": 2})").string();
  const std::string strategy =
      folder.write("strategy.yaml", "tensor_parallel: 8\nglobal_batch: 8\n").string();
  const std::string notes = folder.write("notes.txt", "hello\n").string();
  const std::string result =
      folder.write("result.json", "{\n  \"schema\": \"foreshard.prediction/1\"\n}\n").string();
  const std::string program =
      folder.write("step.json", R"({"schema":"foreshard.program/1"})").string();
  const std::string measured =
      folder.write("measured.json", R"({"schema":"foreshard.measurement/1"})").string();
  const std::string untyped =
      folder.write("untyped.json", R"({"architectures": ["LlamaForCausalLM"]})").string();
  const std::string adapter =
      folder.write("adapter_config.json", R"({"peft_type": "LORA", "r": 8})").string();
  const std::string without_suffix = study.substr(0, study.rfind('.'));
  const struct {
    std::string arguments;
    std::string message;
    std::string help;
  } cases[] = {
      {study, "unknown command '" + study, "did you mean 'foreshard simulate " + study + "'?"},
      {strategy, "unknown command", "did you mean 'foreshard check " + strategy + "'?"},
      {program, "unknown command", "did you mean 'foreshard replay " + program + "'?"},
      {"catalog device H100", "unknown command 'H100'", "'foreshard catalog show H100'"},
      {"catalog show H100", "the catalogue has no 'H100'", "'H100-SXM'"},
      {"catalog operatros", "the catalogue has no 'operatros'", "did you mean 'operators'?"},
      {"replay " + study + " --as-rank 1 -n 2 -o m.json",
       "-n is 2, but --as-rank replays one rank alone", "omit -n"},
      {"reshard " + study, "unexpected argument", "--from-strategy BEFORE --to-strategy AFTER"},
      {"simulate " + study + " --model meta-llama/Llama-3-8B", "no such file",
       "--model config.json"},
      {"topology import " + notes, "none of the known formats", "nvidia-smi topo -m > topo.txt"},
      {"compare " + study + " " + result, "no prediction: it has no breakdown_s", result},
      {"compare " + study + " " + program, "its schema is 'foreshard.program/1'",
       "which foreshard replay -o FILE writes"},
      {"compare " + study, "give what the study is compared with", "--set-b KEY=VALUE"},
      {"compare " + study + " " + study + " --max-error 5%", "--max-error is of a study beside",
       "leave it out"},
      {"compare " + study + " " + measured + " --break-even cluster.rent=1..2",
       "--break-even is of two studies", "is a measurement"},
      {"compare " + study + " " + study + " --break-even cluster.rent=cheap", "'cheap' is no range",
       "1..4 USD/h"},
      {"compare " + result + " " + study + " --set model.layers=2", "--set changes a study",
       "give the study instead"},
      {"simulate " + model, model + " is no study but a model file", "give it as --model " + model},
      {"simulate " + result, "is no study but a result (foreshard.prediction)",
       "give the study that it was made from"},
      {"simulate " + program, "is no study but a result (foreshard.program)",
       "foreshard replay " + program},
      {"search " + strategy, "is no study but a strategy file", "beside --cluster and --model"},
      {"search --strategy " + strategy, "missing: --cluster, --model", "foreshard catalog lists"},
      {"simulate " + study + " --gpus 64", "unknown option '--gpus'",
       "--set cluster.nodes=N, where N nodes have 64"},
      {"simulate " + study + " --world-size=64", "unknown option '--world-size=64'",
       "--set strategy.data_parallel="},
      {"-v", "unknown option '-v'", "did you mean '--version'?"},
      {"simulate " + study + " --json", "unknown option '--json'", "did you mean '--format json'?"},
      {"simulate " + study + " --set tensor_parallel=2", "no key 'tensor_parallel'",
       "did you mean '--set strategy.tensor_parallel=2'?"},
      {"simulate " + study + " --set strategy.tp=2", "no key 'strategy.tp'",
       "did you mean '--set strategy.tensor_parallel=2'?"},
      {"simulate " + without_suffix, "there is no file", "did you mean '" + study},
      {"simulate " + folder.path().string(), "is a directory, not a study",
       "studies in it: '" + study + "'"},
      {"accuracy " + study, "is no table of measurements", "foreshard accuracy TABLE.csv"},
      {"compare " + study + " " + notes, "no JSON: line 1, column 1", "'h'"},
      {"validate", "study is required", "for example: foreshard validate "},
      {"check " + result, "this is a result, not a study", "the file that it was made from"},
      {"topology show " + result, "this is a result, not a cluster", ""},
      {"check " + untyped, "the key 'model_type' is missing", ""},
      {"check " + adapter, "an adapter of PEFT", "config.json of its base model"},
  };
  for (const auto& [arguments, message, help] : cases) {
    const Outcome outcome = foreshard(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(help)) << arguments;
  }
  const std::string plain = folder.write("plain", text_of(kSmallPath)).string();
  EXPECT_EQ(foreshard("check " + plain).code, 0);
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

TEST(Check, RefusesAnUnknownOperatorByName) {
  const TemporaryFolder folder;
  const std::string file = folder
                               .write("graph.yaml",
                                      "name: g\n"
                                      "tensors: [{name: x, role: input, dtype: bf16, shape: [8]}]\n"
                                      "operators: [{op: softmaxx, name: y, inputs: [x]}]\n"
                                      "outputs: [y]\n")
                               .string();
  const Outcome outcome = foreshard("check --kind graph '" + file + "'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("graph.yaml:3:18: error: unknown operator 'softmaxx'"));
  EXPECT_THAT(outcome.err, HasSubstr("did you mean 'softmax'?"));
}

// What check prints is a file of the same kind that reads back.
TEST(Check, RefusesAModelThatAStudyRefuses) {
  const TemporaryFolder folder;
  const std::string file = folder
                               .write("model.yaml",
                                      "{name: odd, layers: 2, hidden: 560, heads: 7, kv_heads: 2, "
                                      "vocabulary: 1000, sequence: 128, source: none}\n")
                               .string();
  const Outcome outcome = foreshard("check --kind model '" + file + "'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("model.yaml: model 'odd': heads 7 is not divisible by kv_heads 2"));
}

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
  const Outcome flat = foreshard(small + " --engine simgrid --granularity flat");
  EXPECT_EQ(flat.code, 2);
  EXPECT_THAT(flat.err, HasSubstr("give --granularity stepwise, or leave out --granularity"));
  EXPECT_THAT(flat.err, testing::Not(HasSubstr("activity 1")));
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
  const Outcome outcome = foreshard("simulate " + parts + "--set communication.name=x");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("missing: --strategy"));
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
  const Outcome twice = foreshard("simulate --model - --cluster - --strategy fsdp-64");
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("- is given for --cluster and --model"));
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

TEST(Simulate, ReadsAHuggingFaceFolderAndDownloadsNothing) {
  const TemporaryFolder folder;
  const std::string config =
      folder.write("tiny/config.json", R"({"model_type": "llama", "num_hidden_layers": 2})")
          .string();
  const std::string rest =
      " --cluster two-dgx-a100 --strategy '{data_parallel: 16, global_batch: 16}'";
  const json expected = step_of("--model '" + config + "'" + rest);
  EXPECT_EQ(step_of("--model '" + (folder.path() / "tiny").string() + "'" + rest), expected);
  EXPECT_EQ(step_of("--model -" + rest + " <'" + config + "'"), expected);
  const Outcome id = foreshard("simulate --model meta-llama/Llama-3.1-8B" + rest);
  EXPECT_EQ(id.code, 2);
  EXPECT_THAT(id.err, HasSubstr("foreshard downloads nothing"));
  EXPECT_THAT(id.err, HasSubstr("--model config.json"));
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
  EXPECT_THAT(outcome.out, testing::AllOf(HasSubstr("\nkv_heads: 6\nhead_dim: 16\nffn: 384\n"),
                                          HasSubstr("is a well-formed model")));
  const std::string echo = folder.write("echo.yaml", outcome.out).string();
  const std::string rest =
      " --cluster two-dgx-a100 --strategy '{data_parallel: 16, global_batch: 16}'";
  EXPECT_EQ(step_of("--model '" + echo + "'" + rest), step_of("--model '" + model + "'" + rest));
  EXPECT_THAT(foreshard("catalog show gpt3-175b").out, HasSubstr("\nffn: 49152\n"));
  EXPECT_THAT(foreshard("check configs/studies/gpt-1.7b-a100-8.yaml").out,
              testing::Not(HasSubstr(" ffn: 0\n")));
  const std::string odd = folder
                              .write("odd.yaml",
                                     "name: odd\nlayers: 2\nhidden: 100\nheads: 6\n"
                                     "vocabulary: 100\nsequence: 64\n")
                              .string();
  const Outcome refused = foreshard("check '" + odd + "'");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("hidden 100 is not divisible by heads 6; give head_dim"));
}

TEST(Help, IsACommandToo) {
  EXPECT_EQ(foreshard("help").out, foreshard("--help").out);
  EXPECT_EQ(foreshard("help simulate").out, foreshard("simulate --help").out);
  EXPECT_EQ(foreshard("help topology show").out, foreshard("topology show --help").out);
  EXPECT_THAT(foreshard("help simulat").err, HasSubstr("did you mean 'simulate'?"));
}

}  // namespace command_line_test
}  // namespace foreshard::cli
