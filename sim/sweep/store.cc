// The results file of a sweep (store.h), written by `foreshard study` and read by comparisons; only
// this file includes SQLite. Any other file is refused and not changed.
#include "sim/sweep/store.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <sqlite3.h>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/check.h"
#include "base/grouped.h"

namespace foreshard::sweep {
namespace fs = std::filesystem;

// In a named namespace because Store::State holds some of it.
namespace sqlite {

struct Close {
  void operator()(sqlite3* file) const { sqlite3_close(file); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

// The reason why a file cannot be used: its content, or a refusal by the system.
struct Refusal {
  bool by_content = false;
  std::string why;
};

class Database {
 public:
  explicit Database(fs::path path) : path_(std::move(path)) {}

  /// \param mode  flags of sqlite3_open_v2.
  std::optional<Refusal> open(int mode) {
    sqlite3* file = nullptr;
    const int code = sqlite3_open_v2(path_.c_str(), &file, mode, nullptr);
    file_.reset(file);
    // This must come before the log is read: then the log needs no shared memory.
    if (code != SQLITE_OK || !run("PRAGMA locking_mode = EXCLUSIVE")) return refusal();
    return std::nullopt;
  }

  /// \return false if it failed; refusal() then says why.
  bool run(const char* sql) {
    return sqlite3_exec(file_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  }

  /// The number that a pragma returns.
  std::optional<std::int64_t> number(const char* sql) {
    std::optional<std::int64_t> value;
    if (!each(sql, {}, [&](sqlite3_stmt* row) { value = sqlite3_column_int64(row, 0); }))
      return std::nullopt;
    return value;
  }

  /// Binds `texts` to the first parameters, and visits each row.
  template <class Visit>
  bool each(const char* sql, const std::vector<std::string_view>& texts, const Visit& visit) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(file_.get(), sql, -1, &raw, nullptr) != SQLITE_OK) return false;
    const std::unique_ptr<sqlite3_stmt, Finalize> statement(raw);
    for (std::size_t i = 0; i < texts.size(); ++i)
      sqlite3_bind_text(raw, static_cast<int>(i) + 1, texts[i].data(),
                        static_cast<int>(texts[i].size()), SQLITE_TRANSIENT);
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(raw)) == SQLITE_ROW) visit(raw);
    return code == SQLITE_DONE;
  }
  bool write(const char* sql, const std::vector<std::string_view>& texts) {
    return each(sql, texts, [](sqlite3_stmt*) {});
  }

  Refusal refusal() const {
    const int code = file_ ? sqlite3_errcode(file_.get()) & 0xff : SQLITE_NOMEM;
    if (code == SQLITE_NOTADB) return {true, "is no results file"};
    if (code == SQLITE_CORRUPT) return {true, "is damaged"};
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
      return {false, "is in use by another run; give each its own file, and merge them"};
    if (code == SQLITE_FULL)
      return {false, "the disk is full; what was stored is kept: free some space and run again"};
    if (code == SQLITE_ERROR) return {true, "has not the tables of a results file"};
    return {false, file_ ? sqlite3_errmsg(file_.get()) : "out of memory"};
  }
  Error error(const Refusal& refused) const {
    return {refused.by_content ? Error::Code::kInvalidInput : Error::Code::kIo,
            fmt::format("{}: {}", path_.string(), refused.why)};
  }
  Error error() const { return error(refusal()); }

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  std::unique_ptr<sqlite3, Close> file_;
};

// A database whose changes reach the disk, all changes of one call or none.
class Writer {
 public:
  explicit Writer(fs::path path) : database(std::move(path)) {}

  template <class Write>
  Status commit(const Write& write) {
    if (database.run("BEGIN") && write() && database.run("COMMIT")) return {};
    const Error error = system_error();
    database.run("ROLLBACK");
    return error;
  }
  // Any failure of a file that was intact when it was opened is the system's.
  Error system_error() const { return {Error::Code::kIo, database.error().message}; }

  Database database;
};

}  // namespace sqlite

namespace {

using sqlite::Database;
using sqlite::Refusal;
using sqlite::Writer;

constexpr int kApplication = 0x666f7273;  // "fors", in the header of the file
constexpr int kForm = 3;                  // format of the tables and of their content
constexpr const char* kTables =
    "CREATE TABLE question(id INTEGER PRIMARY KEY CHECK (id = 1), text TEXT NOT NULL, work TEXT "
    "NOT "
    "NULL);"
    "CREATE TABLE point(id INTEGER PRIMARY KEY, key TEXT NOT NULL);"
    "CREATE TABLE outcome(key TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;";

constexpr const char* kPoints =
    "SELECT point.id, point.key, outcome.text FROM point JOIN outcome USING (key)";

std::string column(sqlite3_stmt* row, int index) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, index));
  return text == nullptr
             ? std::string()
             : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(row, index)));
}

// The reason why an open database is not an intact results file, if any. Sets `empty` to whether it
// has no tables yet.
std::optional<Refusal> fault_in(Database& database, bool& empty) {
  const auto tables = database.number("SELECT count(*) FROM sqlite_master");
  if (!tables) return database.refusal();
  empty = *tables == 0;
  const auto application = database.number("PRAGMA application_id");
  const auto form = database.number("PRAGMA user_version");
  if (!application || !form) return database.refusal();
  if (empty && *application == 0) return std::nullopt;
  if (*application != kApplication) return Refusal{true, "is a database of another program"};
  if (*form != kForm)
    return Refusal{true, "was written in another form, by another version of foreshard"};
  std::string verdict;
  if (!database.each("PRAGMA quick_check(1)", {},
                     [&](sqlite3_stmt* row) { verdict = column(row, 0); }))
    return database.refusal();
  if (verdict != "ok") return Refusal{true, "is damaged"};
  if (!database.write("SELECT question.text, question.work, point.key, outcome.text FROM question, "
                      "point, outcome "
                      "LIMIT 1",
                      {}))
    return database.refusal();
  return std::nullopt;
}

// Renames the file, and the log next to it, to an unused name.
Result<fs::path> set_aside(const fs::path& path) {
  std::error_code status;
  for (int i = 1;; ++i) {
    const fs::path other = path.string() + (i == 1 ? ".aside" : fmt::format(".aside-{}", i));
    if (fs::exists(fs::symlink_status(other, status))) continue;
    fs::rename(path, other, status);
    if (status)
      return Error{Error::Code::kIo, fmt::format("{}: cannot be set aside as {}: {}", path.string(),
                                                 other.string(), status.message())};
    for (const char* beside : {"-journal", "-wal"})
      if (fs::exists(path.string() + beside, status))
        fs::rename(path.string() + beside, other.string() + beside, status);
    return other;
  }
}

// Why no file can be at `path`, in more detail than the database says.
Status fault_in_place(const fs::path& path) {
  const auto fault = [&](const std::string& why) {
    return Error{Error::Code::kIo, fmt::format("{}: {}", path.string(), why)};
  };
  std::error_code status;
  if (fs::is_directory(path, status)) return fault("is a folder; name a file in it");
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!fs::is_directory(folder, status))
    return fault(fmt::format("there is no folder {}; make it first", folder.string()));
  if (fs::exists(path, status) && ::access(path.c_str(), R_OK | W_OK) != 0)
    return fault("may not be written to; change its permissions, or name another file");
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return fault(
        fmt::format("the folder {} may not be written to; name a file elsewhere", folder.string()));
  return {};
}

// Opens a new or existing results file and locks it.
std::optional<Refusal> take(Database& database) {
  constexpr int kMode = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (const auto refused = database.open(kMode)) return refused;
  bool empty = false;
  if (const auto refused = fault_in(database, empty)) return refused;
  if (!database.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; BEGIN EXCLUSIVE"))
    return database.refusal();
  const std::string tables = fmt::format("{} PRAGMA application_id = {}; PRAGMA user_version = {};",
                                         kTables, kApplication, kForm);
  const bool made = !empty || database.run(tables.c_str());
  if (made && database.run("COMMIT")) return std::nullopt;
  const Refusal refused = database.refusal();
  database.run("ROLLBACK");
  return Refusal{false, refused.why};
}

bool put_point(Database& database, std::int64_t index, const std::string& key) {
  // A point that is already there costs no write.
  return database.write(
      "INSERT INTO point VALUES (CAST(?1 AS INTEGER), ?2) ON CONFLICT (id) DO UPDATE SET key = "
      "excluded.key WHERE key <> excluded.key",
      {std::to_string(index), key});
}
bool put_outcome(Database& database, const std::string& key, std::string_view text) {
  return database.write("INSERT OR REPLACE INTO outcome VALUES (?1, ?2)", {key, text});
}

// The content of a file as texts.
struct Content {
  std::string question;
  std::string work;
  std::map<std::int64_t, std::pair<std::string, std::string>> points;  // key and outcome
};

Result<Content> content_of(const fs::path& path) {
  std::error_code status;
  if (!fs::exists(path, status))
    return Error{Error::Code::kIo, path.string() + ": there is no such file"};
  Database database(path);
  // Not read-only: the log of a killed run is merged first.
  if (const auto refused = database.open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX))
    return database.error(*refused);
  bool empty = false;
  if (const auto refused = fault_in(database, empty)) return database.error(*refused);
  Content content;
  const bool read =
      !empty &&
      database.each("SELECT text, work FROM question", {},
                    [&](sqlite3_stmt* row) {
                      content.question = column(row, 0);
                      content.work = column(row, 1);
                    }) &&
      database.each(kPoints, {}, [&](sqlite3_stmt* row) {
        content.points[sqlite3_column_int64(row, 0)] = {column(row, 1), column(row, 2)};
      });
  if (!read || content.question.empty())
    return empty || read
               ? Error{Error::Code::kInvalidInput, path.string() + ": has no results of a sweep"}
               : database.error();
  return content;
}

}  // namespace

struct Store::State {
  explicit State(fs::path path) : file(std::move(path)) {}

  Writer file;
  std::map<std::string, std::string> found;  // key -> text of the outcome
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::open(const fs::path& path, const Question& question, const std::string& work,
                          std::vector<std::string>& remarks) {
  FORESHARD_TRY(fault_in_place(path));
  auto state = std::make_unique<State>(path);
  auto refused = take(state->file.database);
  if (refused && refused->by_content) {
    if (!is_database(path))
      return Error{Error::Code::kInvalidInput,
                   fmt::format("{}: {}, and is left as it is; name a new file, or move it away",
                               path.string(), refused->why)};
    state = std::make_unique<State>(path);  // releases the file
    FORESHARD_ASSIGN(const fs::path other, set_aside(path));
    remarks.push_back(fmt::format("{} {}: it is now {}, and a new file is begun", path.string(),
                                  refused->why, other.string()));
    refused = take(state->file.database);
  }
  if (refused) return Error{Error::Code::kIo, state->file.database.error(*refused).message};
  const std::string text = text_of(question);
  Database& database = state->file.database;
  bool same = false;
  if (!database.each("SELECT text, work FROM question", {}, [&](sqlite3_stmt* row) {
        same = column(row, 0) == text && column(row, 1) == work;
      }))
    return state->file.system_error();
  if (!same)
    FORESHARD_TRY(state->file.commit([&] {
      return database.run("DELETE FROM point; DELETE FROM question") &&
             database.write("INSERT INTO question VALUES (1, ?1, ?2)", {text, work});
    }));
  return Store(std::move(state));
}

Result<std::optional<Outcome>> Store::find(const std::string& key) {
  std::string text;
  if (!state_->file.database.each("SELECT text FROM outcome WHERE key = ?1", {key},
                                  [&](sqlite3_stmt* row) { text = column(row, 0); }))
    return state_->file.system_error();
  auto outcome = outcome_in(text);
  if (!outcome || outcome->refused_here) return std::optional<Outcome>();
  state_->found[key] = std::move(text);
  return std::optional(*std::move(outcome));
}

Status Store::put(std::int64_t index, const std::string& key, const Outcome& outcome) {
  const std::string text = text_of(outcome);
  const auto known = state_->found.find(key);
  const bool stored = known != state_->found.end() && known->second == text;
  FORESHARD_TRY(state_->file.commit([&] {
    return put_point(state_->file.database, index, key) &&
           (stored || put_outcome(state_->file.database, key, text));
  }));
  if (!stored) state_->found[key] = text;
  return {};
}

Result<std::map<std::int64_t, Outcome>> Store::held() {
  std::map<std::int64_t, Outcome> points;
  if (!state_->file.database.each(kPoints, {}, [&](sqlite3_stmt* row) {
        if (auto outcome = outcome_in(column(row, 2)))
          points.emplace(sqlite3_column_int64(row, 0), *std::move(outcome));
      }))
    return state_->file.system_error();
  return points;
}

bool is_database(const fs::path& path) {
  using namespace std::string_view_literals;
  constexpr std::string_view kMagic = "SQLite format 3\0"sv;
  std::string head(kMagic.size(), ' ');
  std::ifstream file(path, std::ios::binary);
  return file.read(head.data(), static_cast<std::streamsize>(head.size())) && head == kMagic;
}

Result<Results> read_results(const fs::path& path) {
  FORESHARD_ASSIGN(const Content content, content_of(path));
  const auto damaged = [&] {
    return Error{Error::Code::kInvalidInput, path.string() + ": is damaged"};
  };
  auto question = question_in(content.question);
  if (!question) return damaged();
  Results results{.question = *std::move(question), .outcomes = {}};
  results.outcomes.resize(static_cast<std::size_t>(size_of(results.question.axes)));
  for (const auto& [index, point] : content.points) {
    auto outcome = outcome_in(point.second);
    if (!outcome || index < 0 || index >= std::ssize(results.outcomes)) return damaged();
    results.outcomes[static_cast<std::size_t>(index)] = *std::move(outcome);
  }
  return results;
}

Status merge_results(const std::vector<fs::path>& inputs, const fs::path& output) {
  std::error_code status;
  if (fs::exists(output, status))
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}: is there already; give a new file", output.string())};
  Content all;
  std::map<std::int64_t, fs::path> from;
  for (const fs::path& input : inputs) {
    FORESHARD_ASSIGN(Content content, content_of(input));
    if (all.question.empty()) {
      all.question = content.question;
      all.work = content.work;
    }
    if (content.question != all.question)
      return Error{Error::Code::kInvalidInput,
                   fmt::format("{} and {} hold results of different sweeps",
                               inputs.front().string(), input.string())};
    if (content.work != all.work)
      return Error{
          Error::Code::kInvalidInput,
          fmt::format("{} and {} were made by other versions, or from other files; run one "
                      "of them again",
                      inputs.front().string(), input.string())};
    for (auto& [index, point] : content.points) {
      const auto [known, is_new] = all.points.emplace(index, point);
      if (is_new) from[index] = input;
      if (known->second == point) continue;
      return Error{Error::Code::kInvalidInput,
                   fmt::format("point {} had other inputs in {} than in {}; run one of them again",
                               grouped(index), from[index].string(), input.string())};
    }
  }
  Writer file(output);
  if (const auto refused = take(file.database)) return file.database.error(*refused);
  const Status written = file.commit([&] {
    bool done =
        file.database.write("INSERT INTO question VALUES (1, ?1, ?2)", {all.question, all.work});
    for (const auto& [index, point] : all.points)
      done = done && put_point(file.database, index, point.first) &&
             put_outcome(file.database, point.first, point.second);
    return done;
  });
  if (!written.ok()) fs::remove(output, status);
  return written;
}

}  // namespace foreshard::sweep
