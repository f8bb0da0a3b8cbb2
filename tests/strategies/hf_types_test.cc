// The model types of the catalogue, each by a config.json that states nothing, or no more than what
// its layers are; and types of one's own.
#include <fmt/format.h>

#include "base/yaml/describe.h"
#include "tests/base/temporary_folder.h"
#include "tests/golden/golden.h"
#include "tests/strategies/shipped_hf_types.h"
#include "tests/test.h"

namespace foreshard::hf_types_test {

std::vector<std::string> lines_of(const Model& model) {
  std::vector<std::string> lines;
  std::istringstream text(yaml::echo(model));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// What differs from a model without a value.
std::string differences(const Model& model) {
  static const auto usual = lines_of(Model{});
  std::string text;
  for (const std::string& line : lines_of(model))
    if (std::ranges::find(usual, line) == usual.end()) text += line + "\n";
  return text;
}

std::string config_of(const std::string& type) {
  const char* layers = type == "nemotron_h" ? R"(, "hybrid_override_pattern": "M-M*-ME")" : "";
  return fmt::format(R"({{"model_type": "{}"{}}})", type, layers);
}

TEST(HfTypes, GiveWhatTheirFilesSay) {
  const yaml::Loader loader(shipped_options());
  std::string text;
  for (const std::string& type : loader.names<HfType>()) {
    const auto read = read_shipped(config_of(type), "mine", std::nullopt);
    text += fmt::format("# {}\n{}", type,
                        read ? differences(read->model) : read.error().message + "\n");
  }
  expect_golden("hf_types.txt", text);
}

// What `check` and `catalog` write of a type is that type.
TEST(HfTypes, AreWrittenAsTheyAreRead) {
  yaml::Loader loader(shipped_options());
  for (const std::string& name : loader.names<HfType>()) {
    const auto type = value_of(loader.read_ref<HfType>(name));
    const std::string written = yaml::echo(type);
    EXPECT_EQ(yaml::echo(value_of(loader.read_text<HfType>(written, name))), written);
    EXPECT_FALSE(type.source.empty()) << name;
  }
}

TEST(HfTypes, OfOnesOwnStandInACatalogue) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "huggingface");
  folder.write("huggingface/mine.yaml",
               "extends: llama\nname: mine\nlayers: {key: depth, default: 2}\n"
               "model: {norm: null, qkv_bias: true}\nlongest: null\n");
  folder.write("huggingface/odd.yaml", "extends: llama\nlayer: {default: 2}\n");
  yaml::Loader loader({.catalogue = {folder.path(), FORESHARD_SOURCE_DIR "/configs"}});
  const auto read = [&](const std::string& text) {
    return read_hf_config(text, "my-model", std::nullopt, false, loader);
  };
  const auto model =
      value_of(read(R"({"model_type": "mine", "depth": 3, "max_position_embeddings": 16})"));
  EXPECT_EQ(model.model.layers, 3);
  EXPECT_EQ(model.model.hidden, 4096);
  EXPECT_EQ(model.model.norm, Norm::kLayerNorm);
  EXPECT_TRUE(model.model.qkv_bias);
  EXPECT_EQ(model.model.sequence, 2048);
  EXPECT_THAT(read(R"({"model_type": "mine", "hidden_act": "relu"})").error().message,
              HasSubstr("for type 'mine'; modelled are: silu swish"));
  // Known as an encoder that is not modelled, until a file says how it is read.
  folder.write("huggingface/roberta.yaml", "extends: bert\nname: roberta\n");
  EXPECT_TRUE(read(R"({"model_type": "roberta"})"));
  EXPECT_THAT(read(R"({"model_type": "odd"})").error().message,
              HasSubstr("unknown key 'layer' in model_type"));
  EXPECT_THAT(read(R"({"model_type": "none"})").error().message, HasSubstr(", mine, "));
}

}  // namespace foreshard::hf_types_test
