/// \file
/// The results file of a sweep: an SQLite database of outcomes by the key of their points
/// (evaluate.h), and which points of which question they belong to.
///
/// Each new outcome is one transaction, which the system has when `put` returns: a process that is
/// killed loses no more than the points it was working on. SQLite's write-ahead log is used, which
/// need not wait for the disk each time: waiting took longer than a point. If the machine itself
/// fails, the last points may be lost, but the file is whole. The log lies beside the file during a
/// run and is gone after it. One process has the file, locked, so that the log needs no memory
/// shared with others, and network file systems will do.
///
/// A database that is damaged, of another program, or was written in another form is never written
/// to: a run sets it aside under another name and begins a new one. Any other file is refused.
///
/// A run of the same work (common_work in evaluate.h) finds the points that the file already has.
/// Not modelled: points whose inputs alone changed, not those of the first one, are as they were in
/// the file until a run comes to them.
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
  /// For a run of `question`. What the file holds is kept; of another question, or other `work`,
  /// only the outcomes by their keys are.
  /// \param work  as common_work says.
  /// \param remarks  receives what happened to a file that was set aside.
  /// \return kIo where the system refuses, or another process has the file; kInvalidInput for an
  ///     existing file that is no database.
  static Result<Store> open(const std::filesystem::path& path, const Question& question,
                            const std::string& work, std::vector<std::string>& remarks);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// The outcome of that key, if it was stored, and holds for other machines too.
  /// \return kIo where the file cannot be read any more.
  Result<std::optional<Outcome>> find(const std::string& key);
  /// Point `index` has this outcome.
  /// \return kIo where the system refuses (the disk is full); the file then has what it had.
  Status put(std::int64_t index, const std::string& key, const Outcome& outcome);
  /// All points of the question that the file has, also from earlier runs. \return kIo as find.
  Result<std::map<std::int64_t, Outcome>> held();

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Whether a file is SQLite's by its first bytes, be it sound or not.
bool is_database(const std::filesystem::path& path);

/// \return kInvalidInput for what is no results file, is damaged, or was written in another form;
///     kIo as of open.
Result<Results> read_results(const std::filesystem::path& path);

/// Writes the points of all files, which are parts of one sweep, into a new file.
/// \return also kInvalidInput where the files have different questions, or a point other inputs in
///     one than in another, or `output` exists.
Status merge_results(const std::vector<std::filesystem::path>& inputs,
                     const std::filesystem::path& output);

}  // namespace foreshard::sweep
