// The results file of a sweep (store.h), written by `foreshard study` and read by comparisons; only
// this file includes SQLite. Any other file is refused and not changed.
#include "sim/sweep/store.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <ranges>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "base/grouped.h"

#include "sim/sweep/grid.h"
#include "sim/sweep/internal/database.h"

namespace foreshard::sweep {
namespace fs = std::filesystem;

namespace internal {  // Named because Store::State holds some of it.

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

}  // namespace internal

namespace {

using internal::Database;
using internal::Refusal;
using internal::Row;
using internal::Writer;
using Access = Database::Access;
using Cause = Refusal::Cause;

// Each row has a digest of its table and its values: a row that was damaged, or put into another
// place, is not found by these.
constexpr const char* kQuestion =
    "SELECT text, work FROM question WHERE digest = sha256('question', text, work)";
constexpr const char* kOutcome =
    "SELECT text FROM outcome WHERE key = ?1 AND digest = sha256('outcome', key, text)";
constexpr const char* kPoints =
    "SELECT point.id, key, text FROM point JOIN outcome USING (key) WHERE "
    "point.digest = sha256('point', id, key) AND outcome.digest = sha256('outcome', key, text)";

constexpr const char* kDamagedQuestion =
    "SELECT id FROM question WHERE digest <> sha256('question', text, work)";
constexpr const char* kDamagedPoints =
    "SELECT point.id FROM point LEFT JOIN outcome USING (key) WHERE NOT coalesce("
    "point.digest = sha256('point', id, key) AND outcome.digest = sha256('outcome', key, text), 0)";
constexpr const char* kDamagedOutcomes =
    "SELECT count(*) FROM outcome WHERE digest <> sha256('outcome', key, text)";
constexpr const char* kRepair =
    "DELETE FROM outcome WHERE digest <> sha256('outcome', key, text);"
    "DELETE FROM point WHERE digest <> sha256('point', id, key) OR key NOT IN "
    "(SELECT key FROM outcome)";

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
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
    if (fs::exists(internal::log_of(path), status))
      fs::rename(internal::log_of(path), internal::log_of(other), status);
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
  if (fs::exists(path, status)) return {};
  const fs::path folder = folder_of(path);
  if (!fs::is_directory(folder, status))
    return fault(fmt::format("there is no folder {}; make it first", folder.string()));
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return fault(
        fmt::format("the folder {} may not be written to; name a file elsewhere", folder.string()));
  return {};
}

// Whether a run may store in a file, which needs a log beside it.
bool is_writable(const fs::path& path) {
  std::error_code status;
  if (!fs::exists(path, status)) return true;
  const fs::path file = behind_links(path);
  return ::access(file.c_str(), W_OK) == 0 && ::access(folder_of(file).c_str(), W_OK | X_OK) == 0;
}

bool put_question(Database& database, const std::string& text, const std::string& work) {
  return database.write("INSERT INTO question VALUES (1, ?1, ?2, sha256('question', ?1, ?2))",
                        {text, work});
}
bool put_point(Database& database, std::int64_t index, const std::string& key) {
  // A point that is already there costs no write.
  return database.write(
      "INSERT INTO point VALUES (CAST(?1 AS INTEGER), ?2, sha256('point', ?1, ?2)) ON CONFLICT "
      "(id) DO UPDATE SET key = excluded.key, digest = excluded.digest WHERE key <> excluded.key",
      {std::to_string(index), key});
}
bool put_outcome(Database& database, const std::string& key, std::string_view text) {
  return database.write("INSERT OR REPLACE INTO outcome VALUES (?1, ?2, sha256('outcome', ?1, ?2))",
                        {key, text});
}

// The content of a file as texts.
struct Content {
  std::string question;
  std::string work;
  std::map<std::int64_t, std::pair<std::string, std::string>> points;  // key and outcome
};

bool read_question(Database& database, Content& content) {
  return database.each(kQuestion, {}, [&](const Row& row) {
    content.question = row.text(0);
    content.work = row.text(1);
  });
}

// What is damaged in an open file.
struct Damage {
  bool question = false;
  std::vector<std::int64_t> points;  // Whose outcomes, or that themselves, are damaged.
  std::int64_t outcomes = 0;         // Also of other sweeps.

  bool any() const { return question || !points.empty() || outcomes > 0; }
};

bool read_damage(Database& database, Damage& damage) {
  return database.each(kDamagedQuestion, {}, [&](const Row&) { damage.question = true; }) &&
         database.each(kDamagedPoints, {},
                       [&](const Row& row) { damage.points.push_back(row.number(0)); }) &&
         database.each(kDamagedOutcomes, {},
                       [&](const Row& row) { damage.outcomes = row.number(0); });
}

// \param text  of the question whose points the file has.
// \param then  what becomes of the points: "computed again".
std::string in_words(const Damage& damage, const std::string& text, std::string_view then) {
  constexpr std::size_t kMostNamed = 5;
  const auto is = [](std::size_t count) { return count == 1 ? "is" : "are"; };
  if (damage.question) return "the name of its sweep is damaged";
  if (damage.points.empty())
    return fmt::format("{} of its outcomes {} damaged", grouped(damage.outcomes),
                       is(static_cast<std::size_t>(damage.outcomes)));
  const auto question = question_in(text);
  std::string said =
      fmt::format("{} of its points {} damaged, and {}:", grouped(std::ssize(damage.points)),
                  is(damage.points.size()), then);
  for (const std::int64_t index : damage.points | std::views::take(kMostNamed))
    said += question && index >= 0 && index < size_of(question->axes)
                ? fmt::format("\n   {}", label_of(index, question->axes))
                : "\n   one whose number is damaged";
  if (damage.points.size() > kMostNamed)
    said += fmt::format("\n   and {} more", grouped(std::ssize(damage.points) - kMostNamed));
  return said;
}

// What to do about a file that cannot be shown.
Error with_remedy(const fs::path& path, const Error& error, Cause cause) {
  if (cause != Cause::kDamaged && cause != Cause::kOtherForm) return error;
  return {
      error.code,
      fmt::format("{}; foreshard study SWEEP.yaml --results {} {}", error.message, path.string(),
                  cause == Cause::kDamaged ? "keeps what is intact, and computes the rest again"
                                           : "makes it anew, and keeps this one beside it")};
}

Result<Content> content_of(const fs::path& path, std::vector<std::string>& remarks) {
  std::error_code status;
  if (!fs::exists(path, status))
    return Error{Error::Code::kIo, path.string() + ": there is no such file"};
  Database database(path);
  if (const auto refused = database.open(Access::kRead))
    return with_remedy(path, database.error(*refused), refused->cause);
  Content content;
  Damage damage;
  const bool read = read_question(database, content) && read_damage(database, damage) &&
                    database.each(kPoints, {}, [&](const Row& row) {
                      content.points[row.number(0)] = {row.text(1), row.text(2)};
                    });
  if (!read) return database.error();
  const std::string words = in_words(damage, content.question, "counted as not done");
  if (damage.question)
    return with_remedy(path, database.error({Cause::kDamaged, words}), Cause::kDamaged);
  if (content.question.empty())
    return database.error({Cause::kForeign, "has no results of a sweep"});
  if (damage.any()) remarks.push_back(fmt::format("{}: {}", path.string(), words));
  return content;
}

// Copies the outcomes that are intact from a damaged file.
void rescue(const fs::path& from, Database& to) {
  Database damaged(from);
  if (damaged.open(Access::kRescue)) return;
  // From both ends: the walk ends where a page is damaged.
  for (const char* order : {"", " ORDER BY key DESC"})
    damaged.each(fmt::format("SELECT key, text FROM outcome WHERE digest = sha256('outcome', key, "
                             "text){}",
                             order)
                     .c_str(),
                 {}, [&](const Row& row) { put_outcome(to, row.text(0), row.text(1)); });
}

// Renames a results file that cannot be used, and begins a new one in its place.
Status begin_anew(const fs::path& path, const Refusal& refused, Writer& file,
                  std::vector<std::string>& remarks) {
  file.database.close();
  FORESHARD_ASSIGN(const fs::path other, set_aside(path));
  if (const auto again = file.database.open(Access::kWrite))
    return Error{Error::Code::kIo, file.database.error(*again).message};
  FORESHARD_TRY(file.commit([&] {
    rescue(other, file.database);
    return true;
  }));
  std::int64_t intact = 0;
  file.database.each("SELECT count(*) FROM outcome", {},
                     [&](const Row& row) { intact = row.number(0); });
  remarks.push_back(fmt::format(
      "{} {}: it is now {}, and a new file is begun{}", path.string(), refused.why, other.string(),
      intact == 0 ? "" : fmt::format(" with its {} intact outcomes", grouped(intact))));
  return {};
}

}  // namespace

struct Store::State {
  explicit State(fs::path path) : file(std::move(path)) {}

  internal::Writer file;
  bool is_read_only = false;
  bool has_points = true;                    // The file has points of the question.
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
  state->is_read_only = !is_writable(path);
  Writer& file = state->file;
  const auto refused = file.database.open(state->is_read_only ? Access::kRead : Access::kWrite);
  if (refused && refused->cause == Cause::kForeign)
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}: {}, and is left as it is; name a new file, or move it away",
                             path.string(), refused->why)};
  if (refused && (refused->cause == Cause::kSystem || state->is_read_only))
    return Error{Error::Code::kIo, file.database.error(*refused).message};
  if (refused) FORESHARD_TRY(begin_anew(path, *refused, file, remarks));
  if (state->is_read_only)
    remarks.push_back(
        fmt::format("{} may not be written to: what it has is used, and nothing is "
                    "stored; name another file to keep the rest",
                    path.string()));
  Content stored;
  Damage damage;
  if (!read_question(file.database, stored) || !read_damage(file.database, damage))
    return file.system_error();
  if (damage.any())
    remarks.push_back(
        fmt::format("{}: {}", path.string(), in_words(damage, stored.question, "computed again")));
  const std::string text = text_of(question);
  state->has_points = stored.question == text && stored.work == work;
  if (!state->is_read_only)
    FORESHARD_TRY(file.commit([&] {
      return (!damage.any() || file.database.run(kRepair)) &&
             (state->has_points || (file.database.run("DELETE FROM point; DELETE FROM question") &&
                                    put_question(file.database, text, work)));
    }));
  return Store(std::move(state));
}

bool Store::is_read_only() const {
  return state_->is_read_only;
}

Result<std::optional<Outcome>> Store::find(const std::string& key) {
  std::string text;
  if (!state_->file.database.each(kOutcome, {key}, [&](const Row& row) { text = row.text(0); }))
    return state_->file.system_error();
  auto outcome = outcome_in(text);
  if (!outcome || outcome->refused_here) return std::optional<Outcome>();
  state_->found[key] = std::move(text);
  return std::optional(*std::move(outcome));
}

Status Store::put(std::int64_t index, const std::string& key, const Outcome& outcome) {
  if (state_->is_read_only) return {};
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
  if (!state_->has_points && state_->is_read_only) return points;
  if (!state_->file.database.each(kPoints, {}, [&](const Row& row) {
        if (auto outcome = outcome_in(row.text(2)))
          points.emplace(row.number(0), *std::move(outcome));
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

Result<Results> read_results(const fs::path& path, std::vector<std::string>& remarks) {
  FORESHARD_ASSIGN(const Content content, content_of(path, remarks));
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

Status merge_results(const std::vector<fs::path>& inputs, const fs::path& output,
                     std::vector<std::string>& remarks) {
  std::error_code status;
  if (fs::exists(output, status))
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}: is there already; give a new file", output.string())};
  Content all;
  std::map<std::int64_t, fs::path> from;
  for (const fs::path& input : inputs) {
    FORESHARD_ASSIGN(Content content, content_of(input, remarks));
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
  if (const auto refused = file.database.open(Access::kWrite)) return file.database.error(*refused);
  const Status written = file.commit([&] {
    bool done = put_question(file.database, all.question, all.work);
    for (const auto& [index, point] : all.points)
      done = done && put_point(file.database, index, point.first) &&
             put_outcome(file.database, point.first, point.second);
    return done;
  });
  if (!written.ok()) fs::remove(output, status);
  return written;
}

}  // namespace foreshard::sweep
