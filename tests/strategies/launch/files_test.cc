// Files as the frameworks' users write them, and by hand what they must become: cases.yaml.
#include "base/yaml/describe.h"
#include "tests/base/yaml/dotted_lines.h"
#include "tests/strategies/launch/launches.h"

#include "strategies/parallelism/strategy.h"

namespace foreshard::launch::files_test {

struct Case {
  std::string text;
  std::string file;
  std::string more;
  std::optional<std::int64_t> devices;
  std::string format;
  Settled set;
  std::string is;
  yaml::Words has;
  yaml::Words without;
  std::vector<std::string> strategy;
  std::string model_is;
  std::vector<std::string> model;
  std::optional<std::int64_t> parameters;
  std::optional<std::vector<std::string>> missing;
  std::optional<std::vector<std::string>> open;
  std::vector<std::string> idle;
  std::optional<std::vector<std::string>> unmodelled;
};
const yaml::Table<Case>& yaml_table(const Case*) {
  static const auto table =
      yaml::Table<Case>("case", "A launch file, and what becomes of it.")
          .optional("text", &Case::text, "The file's text.")
          .optional("file", &Case::file, "Or its name in data/.")
          .optional("more", &Case::more, "Stands behind the text.")
          .optional("devices", &Case::devices, "Ranks, where they are given.")
          .optional("format", &Case::format, "The format that is recognised.")
          .optional("set", &Case::set, "Keys that are set besides.")
          .optional("is", &Case::is, "The whole strategy.")
          .optional("has", &Case::has, "Parts of it.")
          .optional("without", &Case::without, "What is no part of it.")
          .optional("strategy", &Case::strategy, "Lines of the strategy that is read of it.")
          .optional("model_is", &Case::model_is, "The whole model.")
          .optional("model", &Case::model, "Lines of the model that is read of it.")
          .optional("parameters", &Case::parameters, "How many the model has.")
          .optional("missing", &Case::missing, "All keys of a model that the file leaves out.")
          .optional("open", &Case::open, "All keys that are left to the program.")
          .optional("idle", &Case::idle, "Settings without effect, some of them.")
          .optional("unmodelled", &Case::unmodelled,
                    "A part of each setting that is not modelled.");
  return table;
}

struct File {
  std::map<std::string, std::string> parts;
  std::vector<Case> cases;
};
const yaml::Table<File>& yaml_table(const File*) {
  static const auto table =
      yaml::Table<File>("launch files", "")
          .optional("parts", &File::parts, "Texts that stand in others as <name>.")
          .required("cases", &File::cases, "The cases.", yaml::non_empty());
  return table;
}

std::string text_of(const File& file, const Case& one) {
  std::string text = (one.file.empty() ? one.text : launch_file(one.file)) + one.more;
  for (const auto& [name, part] : file.parts)
    if (const auto at = text.find("<" + name + ">"); at != std::string::npos)
      text.replace(at, name.size() + 2, part);
  return text;
}

template <class T>
void expect_lines(const std::vector<Line>& lines, const std::vector<std::string>& expected) {
  if (expected.empty()) return;
  const auto all = dotted_lines(yaml::echo(loaded<T>(lines)));
  for (const std::string& line : expected) EXPECT_THAT(all, Contains(line));
}

void check(const Case& one, const std::string& text) {
  const auto run = value_of(import_text(text, one.devices, one.set));
  const std::string strategy = in_braces(run.strategy);
  if (!one.format.empty()) {
    EXPECT_EQ(run.format, one.format);
  }
  if (!one.is.empty()) {
    EXPECT_EQ(strategy, one.is);
  }
  for (const std::string& part : one.has.words) EXPECT_THAT(strategy, HasSubstr(part));
  for (const std::string& part : one.without.words) EXPECT_THAT(strategy, Not(HasSubstr(part)));
  expect_lines<Strategy>(run.strategy, one.strategy);
  if (!one.model_is.empty()) {
    EXPECT_EQ(in_braces(run.model), one.model_is);
  }
  expect_lines<Model>(run.model, one.model);
  if (one.parameters) {
    EXPECT_EQ(parameter_count(loaded<Model>(run.model)), *one.parameters);
  }
  if (one.missing) {
    EXPECT_EQ(run.missing, *one.missing);
  }
  if (one.open) {
    EXPECT_EQ(run.open, *one.open);
  }
  for (const std::string& setting : one.idle) EXPECT_THAT(run.idle, Contains(setting));
  if (one.unmodelled) {
    ASSERT_EQ(run.unmodelled.size(), one.unmodelled->size());
    for (std::size_t i = 0; i < run.unmodelled.size(); ++i)
      EXPECT_THAT(run.unmodelled[i].setting, HasSubstr((*one.unmodelled)[i]));
  }
  // What a whole model is run with is sound.
  if (!run.model.empty() && run.missing.empty() && one.devices) {
    const auto read = loaded<Strategy>(run.strategy);
    EXPECT_THAT(faults_in(read, loaded<Model>(run.model), *one.devices), IsEmpty());
  }
}

TEST(LaunchFile, BecomesWhatItsCaseSays) {
  yaml::Loader loader;
  const auto file =
      value_of(loader.read_file<File>(FORESHARD_SOURCE_DIR "/tests/strategies/launch/cases.yaml"));
  for (std::size_t i = 0; i < file.cases.size(); ++i) {
    SCOPED_TRACE(loader.place("cases." + std::to_string(i)));
    check(file.cases[i], text_of(file, file.cases[i]));
  }
}

// bf16 where both types are left to the program, fp16 where it alone is.
TEST(DeepSpeedFile, MayLeaveThePrecisionToTheProgram) {
  const auto precision = [](const std::string& types) {
    const auto run = value_of(import_text(
        R"({"train_batch_size": 8, "gradient_accumulation_steps": 1, "zero_optimization":
            {"stage": 3, "reduce_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"},)" +
            types + "}",
        8));
    const std::string strategy = in_braces(run.strategy);
    const std::size_t begin = strategy.find("precision: ") + 11;
    return strategy.substr(begin, 4) + (run.unmodelled.size() > 1 ? " with a word" : "");
  };
  EXPECT_EQ(precision(R"("bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"})"),
            "bf16 with a word");
  EXPECT_EQ(precision(R"("fp16": {"enabled": "auto"})"), "fp16 with a word");
  EXPECT_EQ(precision(R"("bf16": {"enabled": "auto"}, "fp16": {"enabled": true})"), "fp16");
  EXPECT_EQ(precision(R"("bf16": {"enabled": true}, "fp16": {"enabled": "auto"})"), "bf16");
}

TEST(LaunchReport, ShowsWhatWasTakenAndWhatNot) {
  const auto run = value_of(import_text("--micro-batch-size 1 --lr 3 --tp-comm-overlap --bf17", 2));
  const auto lines = report(run);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[0], HasSubstr("run (megatron) gives: data_parallel 2, micro_batch 1"));
  EXPECT_EQ(lines[1], "without meaning for a step: --lr");
  EXPECT_THAT(lines[2], HasSubstr("not in the prediction: --tp-comm-overlap: "));
  EXPECT_EQ(lines[3], "not in the prediction: --bf17: not known; did you mean '--bf16'?");
}

}  // namespace foreshard::launch::files_test
