// Files that other projects wrote, as they are: each is read as its author would expect, or refused
// with the reason. real_files.csv says which; the files themselves lie beside the project, and the
// tests are skipped where they do not.
//
//   file     below ../shared/data/real
//   command  arguments of foreshard; FILE stands for the file, OUT for a new .yaml file
//   outcome  accepted (exit code 0) or refused (2)
//   text     what stdout and stderr together hold: parts, separated by " | "
//
// What a command wrote to OUT is a node or a cluster: `check`, `topology show` and `topology check`
// must accept it, and `text` may speak of what `topology show` says of it.

#include <algorithm>

#include "base/csv.h"
#include "base/file.h"
#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli {
namespace {

const std::filesystem::path kFiles = FORESHARD_SOURCE_DIR "/../shared/data/real";
constexpr const char* kTable = FORESHARD_SOURCE_DIR "/tests/cli/real_files.csv";

struct Row {
  std::size_t line = 0;
  std::string file, command, outcome;
  std::vector<std::string> texts;
};

std::vector<Row> rows_of(const std::string& folder) {
  const auto text = read_file(kTable, 1_MiB);
  const auto table = read_csv(text ? *text : "", "real_files.csv");
  EXPECT_TRUE(table) << table.error().message;
  std::vector<Row> rows;
  if (!table) return rows;
  for (const auto& each : table->rows) {
    Row row{each.line, each.fields[0], each.fields[1], each.fields[2], {}};
    if (!row.file.starts_with(folder + "/")) continue;
    constexpr std::string_view kBetween = " | ";
    std::string rest = each.fields[3];
    for (std::size_t at; (at = rest.find(kBetween)) != std::string::npos;
         rest.erase(0, at + kBetween.size()))
      row.texts.push_back(rest.substr(0, at));
    row.texts.push_back(rest);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string with(std::string command, const std::string& word, const std::string& path) {
  for (std::size_t at = 0; (at = command.find(word, at)) != std::string::npos;
       at += path.size() + 2)
    command.replace(at, word.size(), "'" + path + "'");
  return command;
}

// Runs the command; a file that it wrote is read again. All that was said.
std::string said(const Row& row) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out.yaml").string();
  const std::string file = (kFiles / row.file).string();
  const Outcome outcome = foreshard(with(with(row.command, "FILE", file), "OUT", out));
  std::string all = outcome.out + outcome.err;
  EXPECT_EQ(outcome.code, row.outcome == "accepted" ? 0 : 2) << all;
  if (outcome.code != 0 || row.command.find("OUT") == std::string::npos) return all;
  for (const char* command : {"check ", "topology show ", "topology check "}) {
    const Outcome again = foreshard(command + ("'" + out + "'"));
    EXPECT_EQ(again.code, 0) << command << "\n" << again.err;
    if (std::string_view(command) == "topology show ") all += again.out;
  }
  return all;
}

// The columns of tables are as wide as what stands in them.
std::string single_spaced(std::string text) {
  const auto both_spaces = [](char a, char b) { return a == ' ' && b == ' '; };
  text.erase(std::unique(text.begin(), text.end(), both_spaces), text.end());
  return text;
}

class RealFilesOf : public testing::TestWithParam<const char*> {};
TEST_P(RealFilesOf, AreReadAsTheirRowsSay) {
  const std::string folder = GetParam();
  if (!std::filesystem::is_directory(kFiles / folder)) GTEST_SKIP() << "no " << kFiles / folder;
  for (const Row& row : rows_of(folder)) {
    SCOPED_TRACE("real_files.csv:" + std::to_string(row.line) + ": " + row.file);
    EXPECT_THAT(row.outcome, AnyOf("accepted", "refused"));
    const std::string text = single_spaced(said(row));
    for (const auto& part : row.texts) EXPECT_THAT(text, HasSubstr(single_spaced(part)));
  }
}
INSTANTIATE_TEST_SUITE_P(Folders, RealFilesOf,
                         testing::Values("xml", "smi", "slurm", "paddle", "nccltests", "hf",
                                         "onnx"));

// Those are decoders of Transformers, under names that it or their own code has for them.
TEST(RealFiles, HuggingFaceWithoutRemarks) {
  if (!std::filesystem::is_directory(kFiles / "hf")) GTEST_SKIP() << "no " << kFiles / "hf";
  for (const Row& row : rows_of("hf")) {
    if (row.outcome != "accepted") continue;
    EXPECT_THAT(said(row), Not(HasSubstr("remark"))) << row.file;
  }
}

// The folders of which every file has a row.
const std::set<std::string> kWhole{"nccltests", "paddle", "slurm", "smi", "xml"};

TEST(RealFiles, EveryFileHasARow) {
  for (const std::string& folder : kWhole) {
    if (!std::filesystem::is_directory(kFiles / folder)) GTEST_SKIP() << "no " << kFiles / folder;
    std::set<std::string> known;
    for (const Row& row : rows_of(folder)) known.insert(row.file);
    for (const auto& entry : std::filesystem::directory_iterator(kFiles / folder))
      EXPECT_EQ(known.count(folder + "/" + entry.path().filename().string()), 1U) << entry.path();
  }
}

}  // namespace
}  // namespace foreshard::cli
