// What is said of inputs that are wrong: the cases of tests/errors/*.yaml.

#include "base/file.h"
#include "tests/base/temporary_folder.h"
#include "tests/errors/cases.h"
#include "tests/test.h"

namespace foreshard {

const yaml::Names<Error::Code>& yaml_names(const Error::Code*) {
  static const yaml::Names<Error::Code> names{
      {"invalid-input", Error::Code::kInvalidInput, "The file or argument is wrong."},
      {"infeasible", Error::Code::kInfeasible, "This cluster cannot run the plan."},
      {"unsupported", Error::Code::kUnsupported, "Correct, but not implemented or not built."},
      {"io", Error::Code::kIo, "The operating system refused a read or a write."},
  };
  return names;
}

namespace errors {

const yaml::Table<Case>& yaml_table(const Case*) {
  static const auto table =
      yaml::Table<Case>("case", "An input and what is said of it.")
          .optional("input", &Case::input, "Takes the place of @@ in the text, or of the text.")
          .optional("change", &Case::change, "What is changed in the text, where it first stands.")
          .optional("to", &Case::to, "What stands there instead.")
          .optional("devices", &Case::devices, "Ranks of a launch file.")
          .optional("with", &Case::with, "In place of the group's.")
          .optional("set", &Case::set, "Keys that are set besides.")
          .optional("format", &Case::format, "Of a launch file, where it is given.")
          .optional("message", &Case::message,
                    "Texts that the message contains; `accepted`: there is none.")
          .optional("is", &Case::is, "The whole message.")
          .optional("begins", &Case::begins, "What the message begins with.")
          .optional("without", &Case::without, "Texts that the message does not contain.")
          .check("message", [](const Case& one) {
            const bool says = !one.message.words.empty() || !one.is.empty() ||
                              !one.begins.empty() || !one.without.words.empty();
            return says ? "" : "give what the message contains";
          });
  return table;
}

const yaml::Table<Group>& yaml_table(const Group*) {
  static const auto table =
      yaml::Table<Group>("group", "Cases that have a text in common.")
          .optional("text", &Group::text, "<x> stands for the part x; @@ for a case's input.")
          .optional("file", &Group::file, "A file of the repository that holds the text.")
          .optional("devices", &Group::devices, "Of all its cases.")
          .optional("with", &Group::with,
                    "A device, a dimension: what the reader needs besides the text.")
          .optional("begins", &Group::begins, "What all its messages begin with.")
          .optional("code", &Group::code, "The code of all its errors.")
          .required("cases", &Group::cases, "The cases.", yaml::non_empty());
  return table;
}

const yaml::Table<File>& yaml_table(const File*) {
  static const auto table =
      yaml::Table<File>("errors", "Inputs that are wrong.")
          .required("reads", &File::reads, "The reader of the inputs.")
          .optional("parts", &File::parts, "Texts that the groups and inputs have in common.")
          .optional("files", &File::files, "Name -> text of the files beside the input.")
          .required("groups", &File::groups, "The cases.", yaml::non_empty());
  return table;
}

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// The text that the case asks about.
std::string text_of(const File& file, const Group& group, const Case& one) {
  std::string text = group.text;
  if (!group.file.empty()) {
    auto read = read_file(FORESHARD_SOURCE_DIR "/" + group.file, 1_MiB);
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    if (read) text = *std::move(read);
  }
  if (text.empty()) text = "@@";
  if (one.change.empty()) text = replaced(text, "@@", one.input);
  for (const auto& [name, part] : file.parts) text = replaced(text, "<" + name + ">", part);
  if (one.change.empty()) return text;
  const std::size_t at = text.find(one.change);
  EXPECT_NE(at, std::string::npos) << "no '" << one.change << "' in " << text;
  return at == std::string::npos ? text : text.replace(at, one.change.size(), one.to);
}

void check(const File& file, const Group& group, const Case& one, Reader read) {
  const TemporaryFolder folder;
  for (const auto& [name, text] : file.files) folder.write(name, text);
  // Commands name the folder by an @.
  const auto placed = [&](const std::string& text) {
    return file.reads == "command" ? replaced(text, "@/", folder.path().string() + "/") : text;
  };
  const Status status = read({.text = placed(text_of(file, group, one)),
                              .devices = one.devices ? one.devices : group.devices,
                              .with = one.with.empty() ? group.with : one.with,
                              .set = one.set,
                              .format = one.format,
                              .folder = folder.path()});
  const std::string message = status.ok() ? "accepted" : status.error().message;
  if (one.message.words == std::vector<std::string>{"accepted"}) {
    EXPECT_TRUE(status.ok()) << message;
    return;
  }
  ASSERT_FALSE(status.ok()) << "accepted";
  if (group.code) {
    EXPECT_EQ(status.error().code, *group.code);
  }
  if (!one.is.empty()) {
    EXPECT_EQ(message, one.is);
  }
  for (const std::string& part : one.message.words) EXPECT_THAT(message, HasSubstr(placed(part)));
  for (const std::string& part : one.without.words) EXPECT_THAT(message, Not(HasSubstr(part)));
  EXPECT_THAT(message, StartsWith(group.begins));
  EXPECT_THAT(message, StartsWith(one.begins));
}

std::vector<std::string> all_files() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(FORESHARD_SOURCE_DIR "/tests/errors"))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Errors : public testing::TestWithParam<std::string> {};

TEST_P(Errors, SayWhatTheirFileTells) {
  yaml::Loader loader;
  const auto file = value_of(
      loader.read_file<File>(FORESHARD_SOURCE_DIR "/tests/errors/" + GetParam() + ".yaml"));
  const Reader read = reader_called(file.reads);
  ASSERT_NE(read, nullptr) << loader.error_at("reads", "there is no such reader").message;
  for (std::size_t g = 0; g < file.groups.size(); ++g) {
    const Group& group = file.groups[g];
    for (std::size_t i = 0; i < group.cases.size(); ++i) {
      SCOPED_TRACE(loader.place("groups." + std::to_string(g) + ".cases." + std::to_string(i)));
      check(file, group, group.cases[i], read);
    }
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}
INSTANTIATE_TEST_SUITE_P(Of, Errors, testing::ValuesIn(all_files()), name_of);

}  // namespace
}  // namespace errors
}  // namespace foreshard
