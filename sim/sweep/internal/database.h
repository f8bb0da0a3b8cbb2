/// \file
/// The SQLite file of a results file (store.h), of which nothing is believed before it is checked.
///
/// Before SQLite sees a file, its first bytes are read: a file of another program is not opened,
/// because opening alone may merge its log. A file is then used only if its schema is ours to the
/// letter (no view, trigger or other table can run anything) and its pages are in order. Each
/// statement does a bounded amount of work. Rows have a digest of their values, which the SQL
/// function `sha256` computes.
///
/// Reading writes nothing: the file may lie on a read-only medium, or belong to somebody else.
///
/// Source: SQLite, "Defense Against The Dark Arts"; "Database File Format", section 1.3.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace foreshard::sweep::internal {

/// Why a file cannot be used.
struct Refusal {
  enum class Cause : std::uint8_t {
    kForeign,    ///< It is no results file.
    kOtherForm,  ///< A results file of another version.
    kDamaged,    ///< A results file whose schema or pages are not in order.
    kSystem,     ///< The system refuses, or another process has the file.
  };
  Cause cause;
  std::string why;
};

/// A row of the result of a statement.
class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  std::string text(int column) const;
  std::int64_t number(int column) const;

 private:
  sqlite3_stmt* statement_;
};

/// The log (write-ahead) of the database at `path`.
std::filesystem::path log_of(const std::filesystem::path& path);

class Database {
 public:
  enum class Access : std::uint8_t {
    kWrite,   ///< Locks the file, and creates it if there is none, or an empty one.
    kRead,    ///< Reads the file and its log as they are.
    kRescue,  ///< As kRead, also where pages are damaged or the version is another one.
  };

  /// \param path  as messages show it.
  explicit Database(std::filesystem::path path);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  /// Closes what was open. \return the reason, if the file cannot be used; its bytes are then as
  /// they were.
  std::optional<Refusal> open(Access access);
  void close() { database_.reset(); }

  /// \return false if it failed; refusal() then says why.
  bool run(const char* sql);
  /// Binds `texts` to the first parameters, and calls `visit` with each row.
  bool each(const char* sql, const std::vector<std::string_view>& texts,
            const std::function<void(const Row&)>& visit);
  bool write(const char* sql, const std::vector<std::string_view>& texts);

  /// Why the last call failed.
  Refusal refusal() const;
  Error error(const Refusal& refused) const;
  Error error() const { return error(refusal()); }

 private:
  std::optional<Refusal> connect(const std::string& name, int flags);
  std::optional<Refusal> connect_to_read();
  bool create();
  std::optional<Refusal> fault_in_schema();
  std::optional<Refusal> fault_in_pages();
  void harden();
  void limit(std::int64_t most_steps, int longest_value);

  std::filesystem::path path_;
  std::filesystem::path file_path_;  // Absolute, without symbolic links.
  struct Close {
    void operator()(sqlite3* file) const;
  };
  std::unique_ptr<sqlite3, Close> database_;
  std::int64_t most_steps_ = 0;  // Of a statement.
  std::int64_t steps_left_ = 0;
};

}  // namespace foreshard::sweep::internal
