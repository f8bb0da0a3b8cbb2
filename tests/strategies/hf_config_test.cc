// Models from config.json: the cases of hf_configs.yaml. tests/errors/huggingface.yaml has what is
// wrong with such files.
#include "strategies/graph/hf_config.h"

#include "base/yaml/describe.h"
#include "tests/base/yaml/dotted_lines.h"
#include "tests/strategies/shipped_hf_types.h"
#include "tests/test.h"

namespace foreshard::hf_config_test {

struct Case {
  std::string name;
  std::string config;
  bool extend = false;
  std::optional<std::int64_t> parameters;
  std::optional<std::int64_t> position_rows;
  std::vector<std::string> has;
  std::optional<std::vector<std::string>> biases;
  std::optional<std::vector<std::string>> remarks;
};
const yaml::Table<Case>& yaml_table(const Case*) {
  static const auto table =
      yaml::Table<Case>("case", "A config.json, and what is read of it.")
          .optional("name", &Case::name, "Of the model.")
          .required("config", &Case::config, "Its keys, without the braces.")
          .optional("extend", &Case::extend, "Whether positions are extended.")
          .optional("parameters", &Case::parameters, "How many the model has.")
          .optional("position_rows", &Case::position_rows, "Of the table of positions.")
          .optional("has", &Case::has, "Lines that the model is written with.")
          .optional("biases", &Case::biases, "All that there are: qkv, attention-out, mlp.")
          .optional("remarks", &Case::remarks, "A part of each that there is.");
  return table;
}

struct Group {
  std::optional<std::int64_t> sequence;
  std::vector<Case> cases;
};
const yaml::Table<Group>& yaml_table(const Group*) {
  static const auto table =
      yaml::Table<Group>("group", "Cases that have the sequence in common.")
          .optional("sequence", &Group::sequence, "Tokens of a sample; else by the file.")
          .required("cases", &Group::cases, "The cases.", yaml::non_empty());
  return table;
}

struct File {
  std::vector<Group> groups;
};
const yaml::Table<File>& yaml_table(const File*) {
  static const auto table =
      yaml::Table<File>("cases", "").required("groups", &File::groups, "The cases.");
  return table;
}

void check(const Case& one, std::optional<std::int64_t> sequence) {
  const HfModel read =
      value_of(read_shipped("{" + one.config + "}", "mine", sequence, one.extend), one.config);
  const Model& model = read.model;
  if (one.parameters) {
    EXPECT_EQ(parameter_count(model), *one.parameters);
  }
  if (one.position_rows) {
    EXPECT_EQ(model.position_rows(), *one.position_rows);
  }
  const auto lines = dotted_lines(yaml::echo(model));
  for (const std::string& line : one.has) EXPECT_THAT(lines, Contains(line));
  if (one.biases) {
    std::vector<std::string> biases;
    if (model.has_qkv_bias()) biases.emplace_back("qkv");
    if (model.has_attention_out_bias()) biases.emplace_back("attention-out");
    if (model.has_mlp_bias()) biases.emplace_back("mlp");
    EXPECT_EQ(biases, *one.biases);
  }
  if (!one.remarks) return;
  ASSERT_EQ(read.remarks.size(), one.remarks->size());
  for (std::size_t i = 0; i < read.remarks.size(); ++i)
    EXPECT_THAT(read.remarks[i], HasSubstr((*one.remarks)[i]));
}

TEST(HfConfig, AreReadAsTheirCasesSay) {
  yaml::Loader loader;
  const auto file =
      value_of(loader.read_file<File>(FORESHARD_SOURCE_DIR "/tests/strategies/hf_configs.yaml"));
  for (std::size_t g = 0; g < file.groups.size(); ++g)
    for (std::size_t i = 0; i < file.groups[g].cases.size(); ++i) {
      SCOPED_TRACE(loader.place("groups." + std::to_string(g) + ".cases." + std::to_string(i)));
      check(file.groups[g].cases[i], file.groups[g].sequence);
    }
}

}  // namespace foreshard::hf_config_test
