/// \file
/// The results file of a sweep: an SQLite database of outcomes by the key of their points
/// (evaluate.h), and of the points of the question to which they belong.
///
/// Each new outcome is one transaction, which the system has when `put` returns: a killed process
/// loses only the points that it was working on. SQLite's write-ahead log is used because it need
/// not wait for the disk each time; waiting took longer than a point. If the machine itself fails,
/// the last points may be lost, but the file is intact. The log is next to the file during a run
/// and is removed after it. One process has the file locked, so the log needs no shared memory, and
/// network file systems work.
///
/// Each row has a SHA-256 of its values: damaged outcomes are named and computed again. A results
/// file whose schema or pages are damaged, or that has another format, is never written to: a run
/// renames it and begins a new one with the outcomes that are intact. Any other file is refused,
/// and not opened (internal/database.h). A file that may not be written to is read.
///
/// A run of the same work (common_work in evaluate.h) finds the points that the file already has.
/// Not modelled: if inputs of points other than the first have changed, their old outcomes stay in
/// the file until a run reaches these points.
///
/// Source: SQLite, "Write-Ahead Logging", sections 2.2 (performance) and 8 (without shared memory).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

#include "sim/sweep/results.h"

namespace foreshard::sweep {

class Store {
 public:
  /// Opens the file for a run of `question`. If it holds the same question and `work`, its content
  /// is kept; otherwise only the outcomes by their keys are kept.
  /// \param work  the result of common_work.
  /// \param remarks  receives a remark if a file was set aside, outcomes are damaged, or the file
  ///     may not be written to.
  /// \return kIo if the system refuses, or another process has the file; kInvalidInput for an
  ///     existing file that is no results file.
  static Result<Store> open(const std::filesystem::path& path, const Question& question,
                            const std::string& work, std::vector<std::string>& remarks);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// The outcome with that key, if it was stored and is valid on other machines too.
  /// \return kIo if the file can no longer be read.
  Result<std::optional<Outcome>> find(const std::string& key);
  /// Stores the outcome of point `index`.
  /// \return kIo if the system refuses (the disk is full); the file then keeps its previous
  ///     content.
  Status put(std::int64_t index, const std::string& key, const Outcome& outcome);
  /// Whether the file may not be written to: its content is found, and `put` does nothing.
  bool is_read_only() const;
  /// All points of the question that the file has, also from earlier runs. \return kIo as in find.
  Result<std::map<std::int64_t, Outcome>> held();

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Whether a file is an SQLite database by its first bytes, intact or not.
bool is_database(const std::filesystem::path& path);

/// \param remarks  receives a remark if outcomes are damaged; they count as not done.
/// \return kInvalidInput for a file that is not a results file, whose schema or pages are damaged,
///     or that has another format; kIo as in open.
Result<Results> read_results(const std::filesystem::path& path, std::vector<std::string>& remarks);

/// Writes the points of all files, which are parts of one sweep, into a new file.
/// \return also kInvalidInput if the files have different questions, or different inputs for the
///     same point, or `output` exists.
Status merge_results(const std::vector<std::filesystem::path>& inputs,
                     const std::filesystem::path& output, std::vector<std::string>& remarks);

}  // namespace foreshard::sweep
