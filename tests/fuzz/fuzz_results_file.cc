// A results file of a sweep after somebody ran any SQL on it, or any bytes as such a file: refused
// with its name, or read.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sqlite3.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/words.h"

#include "sim/sweep/store.h"

namespace foreshard::fuzz::results_file_test {
namespace fs = std::filesystem;

sweep::Question question() {
  sweep::Question question;
  question.name = "fuzzed";
  question.axes.resize(1);
  question.axes[0] = {.name = "x", .values = {"1", "2", "3"}};
  return question;
}

// The bytes of a file with three outcomes.
const std::string& intact() {
  static const std::string bytes = [] {
    const fs::path file = fuzz::Folder::path() / "intact.db";
    std::vector<std::string> remarks;
    {
      auto opened = sweep::Store::open(file, question(), "work", remarks);
      FORESHARD_CHECK(opened.has_value());
      sweep::Store store = *std::move(opened);
      for (std::int64_t i = 0; i < 3; ++i) {
        sweep::Outcome outcome;
        outcome.why = "why " + std::to_string(i);
        FORESHARD_CHECK(store.put(i, std::string(64, static_cast<char>('a' + i)), outcome).ok());
      }
    }
    return *read_file(file, 1_MiB);
  }();
  return bytes;
}

// What is no SQL is an error of its own; it may neither name other files nor take long.
void run_sql(const fs::path& file, const std::string& sql) {
  sqlite3* opened = nullptr;
  FORESHARD_CHECK(sqlite3_open(file.c_str(), &opened) == SQLITE_OK);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database(opened, &sqlite3_close);
  sqlite3_limit(opened, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, 1 << 20);
  int calls = 0;
  sqlite3_progress_handler(
      opened, 1000, [](void* called) { return ++*static_cast<int*>(called) > 20 ? 1 : 0; }, &calls);
  sqlite3_exec(opened, sql.c_str(), nullptr, nullptr, nullptr);
}

void write(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace foreshard::fuzz::results_file_test

FORESHARD_FUZZER(fuzz_results_file) {
  using namespace foreshard;
  using namespace foreshard::fuzz::results_file_test;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const fs::path folder = fuzz::Folder::path() / "results";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const fs::path file = folder / "r.db";
  const bool is_file = text.starts_with("SQLite format 3");
  write(file, is_file ? text : intact());
  if (!is_file) run_sql(file, text);
  std::vector<std::string> remarks;
  const auto results = sweep::read_results(file, remarks);
  if (!results) FORESHARD_CHECK(results.error().message.find("r.db") != std::string::npos);
  const auto store = sweep::Store::open(file, question(), "work", remarks);
  if (!store) FORESHARD_CHECK(store.error().message.find("r.db") != std::string::npos);
  return 0;
}
