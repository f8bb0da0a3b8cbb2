#include "sim/sweep/internal/database.h"

#include <algorithm>
#include <array>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <span>
#include <sqlite3.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/digest/sha256.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/scratch_folder.h"

namespace foreshard::sweep::internal {
namespace fs = std::filesystem;
namespace {

using Cause = Refusal::Cause;

constexpr std::uint32_t kApplication = 0x666f7273;  // "fors", in the header of the file
constexpr std::uint32_t kForm = 4;                  // Version of the tables and of their content.
// As SQLite keeps them in the schema.
constexpr std::array<const char*, 3> kTables{
    "CREATE TABLE question(id INTEGER PRIMARY KEY CHECK (id = 1), text TEXT NOT NULL, "
    "work TEXT NOT NULL, digest TEXT NOT NULL)",
    "CREATE TABLE point(id INTEGER PRIMARY KEY, key TEXT NOT NULL, digest TEXT NOT NULL)",
    "CREATE TABLE outcome(key TEXT PRIMARY KEY, text TEXT NOT NULL, digest TEXT NOT NULL) "
    "WITHOUT ROWID"};

// The work of a statement in steps: some microseconds each. Intact files take a step for 100 rows,
// and one for each kBytesPerStep of a digest; a point may share its outcome with all others.
constexpr int kInstructionsPerStep = 1000;
constexpr std::int64_t kBytesPerStep = 16 << 10;
constexpr std::int64_t kMostSteps = 50'000;
constexpr std::int64_t kFileBytesPerStep = 1 << 10;
constexpr std::int64_t kMostStepsOfSchema = 100;
constexpr int kLongestOfSchema = 4096;

Refusal damaged() {
  return {Cause::kDamaged, "is damaged"};
}

// --- The file without SQLite ---

std::int64_t bytes_in(const fs::path& path) {
  std::error_code none;
  const auto size = fs::file_size(path, none);
  return none ? 0 : static_cast<std::int64_t>(size);
}

// Source: "Database File Format", section 1.3.
constexpr std::size_t kHeader = 100;
constexpr std::string_view kMagic("SQLite format 3\0", 16);

enum class Kind : std::uint8_t {
  kNone,
  kUnreadable,
  kForeign,
  kForeignDatabase,
  kOtherForm,
  kDamaged,
  kOurs,
};

Kind kind_of(const fs::path& path) {
  std::error_code status;
  if (!fs::exists(path, status)) return Kind::kNone;
  if (!fs::is_regular_file(path, status)) return Kind::kForeign;
  std::string head(kHeader, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file) return Kind::kUnreadable;
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (file.gcount() == 0 && file.eof()) return Kind::kNone;
  if (!head.starts_with(kMagic)) return Kind::kForeign;
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i)
      value = value << 8 | static_cast<unsigned char>(head[i]);
    return value;
  };
  constexpr std::size_t kVersionsAt = 18;
  constexpr std::size_t kEncodingAt = 56;
  constexpr std::size_t kFormAt = 60;
  constexpr std::size_t kApplicationAt = 68;
  if (number(kApplicationAt) != kApplication) return Kind::kForeignDatabase;
  if (number(kFormAt) != kForm) return Kind::kOtherForm;
  // 2: with a log; 1: a run was killed while it created the file.
  const auto is_version = [](char version) { return version == 1 || version == 2; };
  return is_version(head[kVersionsAt]) && is_version(head[kVersionsAt + 1]) &&
                 number(kEncodingAt) == SQLITE_UTF8
             ? Kind::kOurs
             : Kind::kDamaged;
}

// A rollback journal is never ours. SQLite would apply it, and remove the file that it names.
fs::path journal_of(const fs::path& path) {
  return path.string() + "-journal";
}

std::optional<Refusal> fault_in_kind(const fs::path& path, Kind kind, Database::Access access) {
  std::error_code status;
  switch (kind) {
    case Kind::kNone:
      if (access != Database::Access::kWrite) return Refusal{Cause::kForeign, "is no results file"};
      if (bytes_in(log_of(path)) > 0)
        return Refusal{Cause::kSystem,
                       fmt::format("the log {} of such a file is there, and the file is not; "
                                   "remove the log, or name another file",
                                   log_of(path).string())};
      break;
    case Kind::kUnreadable:
      return Refusal{Cause::kSystem,
                     "may not be read; change its permissions, or name another file"};
    case Kind::kForeign:
      return Refusal{Cause::kForeign, "is no results file"};
    case Kind::kForeignDatabase:
      return Refusal{Cause::kForeign, "is a database of another program"};
    case Kind::kOtherForm:
      if (access != Database::Access::kRescue)
        return Refusal{Cause::kDamaged,
                       "was written in another form, by another version of "
                       "foreshard"};
      break;
    case Kind::kDamaged:
      if (access != Database::Access::kRescue) return damaged();
      break;
    case Kind::kOurs:
      break;
  }
  if (fs::exists(journal_of(path), status))
    return Refusal{Cause::kSystem, fmt::format("{} is no part of a results file; move it away",
                                               journal_of(path).string())};
  return std::nullopt;
}

// Copies a file that its owner may write to. \return whether it is there.
bool copied(const fs::path& from, const fs::path& to, std::error_code& status) {
  fs::copy_file(from, to, status);
  if (!status) fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write, status);
  return !status;
}

// Whether another process writes to the file: SQLite locks these bytes.
// Source: "File Locking And Concurrency", and SHARED_FIRST of its sources.
bool is_locked(const fs::path& path) {
  constexpr off_t kSharedFirst = 0x40000002;
  constexpr off_t kSharedSize = 510;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = kSharedFirst;
  lock.l_len = kSharedSize;
  const bool locked = ::fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(file);
  return locked;
}

// The path as SQLite's URI of a file that nobody writes to.
std::string unchanging(const fs::path& path) {
  std::string uri = "file://";
  for (const char c : path.string())
    if (c == '%' || c == '?' || c == '#')
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    else
      uri += c;
  return uri + "?immutable=1";
}

// --- SQL function sha256(value, ...) ---

// A value's length stands before it: no two lists of values are the same text.
void add_sha256(sqlite3_context* context, int count, sqlite3_value** values) noexcept try {
  Sha256 digest;
  for (sqlite3_value* value : std::span(values, static_cast<std::size_t>(count))) {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_value_text(value));
    const std::string_view text(bytes == nullptr ? "" : bytes,
                                static_cast<std::size_t>(sqlite3_value_bytes(value)));
    digest.update(fmt::format("{}:", text.size()));
    digest.update(text);
    *static_cast<std::int64_t*>(sqlite3_user_data(context)) -= std::ssize(text) / kBytesPerStep;
  }
  const std::string hex = digest.finish();
  sqlite3_result_text(context, hex.data(), static_cast<int>(hex.size()), SQLITE_TRANSIENT);
} catch (const std::exception&) {
  sqlite3_result_error_nomem(context);
}

int spend(void* steps_left) {
  return --*static_cast<std::int64_t*>(steps_left) < 0 ? 1 : 0;
}

}  // namespace

fs::path log_of(const fs::path& path) {
  return path.string() + "-wal";
}

std::string Row::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text == nullptr
             ? std::string()
             : std::string(text,
                           static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

std::int64_t Row::number(int column) const {
  return sqlite3_column_int64(statement_, column);
}

void Database::Close::operator()(sqlite3* file) const {
  sqlite3_close(file);
}

Database::Database(fs::path path) : path_(std::move(path)) {}
Database::~Database() = default;

std::optional<Refusal> Database::open(Access access) {
  database_.reset();
  // SQLite takes some names for something else than a file, but no absolute ones.
  file_path_ = fs::absolute(behind_links(path_));
  const Kind kind = kind_of(file_path_);
  if (auto refused = fault_in_kind(file_path_, kind, access)) return refused;
  const bool writes = access == Access::kWrite;
  if (auto refused = writes ? connect(file_path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
                            : connect_to_read())
    return refused;
  if (kind == Kind::kNone && !create()) return Refusal{Cause::kSystem, refusal().why};
  if (auto refused = fault_in_schema()) return refused;
  if (access == Access::kRescue) return std::nullopt;
  if (auto refused = fault_in_pages()) return refused;
  // A machine that fails loses what was stored since the log was merged last, and nothing else.
  if (!writes) return std::nullopt;
  if (!run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")) return refusal();
  sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  return std::nullopt;
}

std::optional<Refusal> Database::connect(const std::string& name, int flags) {
  sqlite3* file = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &file, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(file);
  if (code != SQLITE_OK) return refusal();
  harden();
  // This must come before the log is read: then the log needs no shared memory.
  if (!run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; "
           "PRAGMA temp_store = MEMORY"))
    return refusal();
  return std::nullopt;
}

// The log of a killed run can be read only where SQLite may write: beside copies of both, which are
// removed at once.
std::optional<Refusal> Database::connect_to_read() {
  if (is_locked(file_path_)) return Refusal{Cause::kSystem, "is in use by another run"};
  const fs::path log = log_of(file_path_);
  if (bytes_in(log) == 0)
    return connect(unchanging(file_path_), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  std::error_code status;
  const ScratchFolder scratch;
  const fs::path copy = scratch.path() / "results.db";
  if (scratch.path().empty() || !copied(file_path_, copy, status) ||
      !copied(log, log_of(copy), status))
    return Refusal{Cause::kSystem,
                   fmt::format("cannot be copied to a temporary folder to be read with its log {}: "
                               "{}; set TMPDIR to one with room",
                               log.string(), status.message())};
  if (auto refused = connect(copy, SQLITE_OPEN_READWRITE)) return refused;
  return run("PRAGMA schema_version") ? std::nullopt : std::optional(refusal());
}

void Database::harden() {
  constexpr std::array<std::pair<int, int>, 7> kSettings{{{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                                          {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1},
                                                          {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                                          {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                                          {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                                          {SQLITE_DBCONFIG_DQS_DDL, 0},
                                                          {SQLITE_DBCONFIG_DQS_DML, 0}}};
  for (const auto& [setting, value] : kSettings)
    sqlite3_db_config(database_.get(), setting, value, nullptr);
  constexpr std::array<std::pair<int, int>, 8> kLimits{{{SQLITE_LIMIT_SQL_LENGTH, kLongestOfSchema},
                                                        {SQLITE_LIMIT_COLUMN, 16},
                                                        {SQLITE_LIMIT_EXPR_DEPTH, 16},
                                                        {SQLITE_LIMIT_COMPOUND_SELECT, 2},
                                                        {SQLITE_LIMIT_FUNCTION_ARG, 8},
                                                        {SQLITE_LIMIT_ATTACHED, 0},
                                                        {SQLITE_LIMIT_VARIABLE_NUMBER, 8},
                                                        {SQLITE_LIMIT_TRIGGER_DEPTH, 1}}};
  for (const auto& [what, most] : kLimits) sqlite3_limit(database_.get(), what, most);
  sqlite3_progress_handler(database_.get(), kInstructionsPerStep, &spend, &steps_left_);
  limit(kMostStepsOfSchema, kLongestOfSchema);
  sqlite3_create_function(database_.get(), "sha256", -1,
                          SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, &steps_left_,
                          &add_sha256, nullptr, nullptr);
}

void Database::limit(std::int64_t most_steps, int longest_value) {
  most_steps_ = most_steps;
  sqlite3_limit(database_.get(), SQLITE_LIMIT_LENGTH, longest_value);
}

// The journal of this one transaction is kept in memory: a killed run must not leave one behind.
bool Database::create() {
  std::string sql = "PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE; ";
  for (const char* table : kTables) sql += fmt::format("{}; ", table);
  sql += fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; COMMIT", kApplication,
                     kForm);
  return run(sql.c_str());
}

std::optional<Refusal> Database::fault_in_schema() {
  limit(kMostStepsOfSchema, kLongestOfSchema);
  std::vector<std::string> tables;
  if (!each("SELECT sql FROM sqlite_schema", {},
            [&](const Row& row) { tables.push_back(row.text(0)); }))
    return refusal();
  if (!std::ranges::equal(tables, kTables))
    return Refusal{Cause::kDamaged, "has not exactly the tables of a results file"};
  const std::int64_t pages = bytes_in(file_path_) + bytes_in(log_of(file_path_));
  limit(kMostSteps + pages / kFileBytesPerStep,
        static_cast<int>(std::min(limits::raised(limits::kSweepValue) / 1_B, 1e9)));
  return std::nullopt;
}

std::optional<Refusal> Database::fault_in_pages() {
  std::string verdict;
  if (!each("PRAGMA integrity_check(1)", {}, [&](const Row& row) { verdict = row.text(0); }))
    return refusal();
  return verdict == "ok" ? std::nullopt : std::optional(damaged());
}

bool Database::run(const char* sql) {
  steps_left_ = most_steps_;
  return sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

bool Database::each(const char* sql, const std::vector<std::string_view>& texts,
                    const std::function<void(const Row&)>& visit) {
  steps_left_ = most_steps_;
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql, -1, &raw, nullptr) != SQLITE_OK) return false;
  const std::unique_ptr<sqlite3_stmt, decltype([](sqlite3_stmt* s) { sqlite3_finalize(s); })>
      statement(raw);
  for (std::size_t i = 0; i < texts.size(); ++i)
    sqlite3_bind_text(raw, static_cast<int>(i) + 1, texts[i].data(),
                      static_cast<int>(texts[i].size()), SQLITE_TRANSIENT);
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) visit(Row(raw));
  return code == SQLITE_DONE;
}

bool Database::write(const char* sql, const std::vector<std::string_view>& texts) {
  return each(sql, texts, [](const Row&) {});
}

Refusal Database::refusal() const {
  switch (database_ ? sqlite3_errcode(database_.get()) & 0xff : SQLITE_NOMEM) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_INTERRUPT:  // too many steps
    case SQLITE_TOOBIG:
      return damaged();
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {Cause::kSystem, "is in use by another run; give each its own file, and merge them"};
    case SQLITE_FULL:
      return {Cause::kSystem,
              "the disk is full; what was stored is kept: free some space and run again"};
    case SQLITE_ERROR:
      return {Cause::kDamaged, "has not the tables of a results file"};
    case SQLITE_NOMEM:
      return {Cause::kSystem, "out of memory"};
    default:
      return {Cause::kSystem, sqlite3_errmsg(database_.get())};
  }
}

Error Database::error(const Refusal& refused) const {
  return {refused.cause == Cause::kSystem ? Error::Code::kIo : Error::Code::kInvalidInput,
          fmt::format("{}: {}", path_.string(), refused.why)};
}

}  // namespace foreshard::sweep::internal
