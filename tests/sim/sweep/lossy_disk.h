/// \file
/// A disk that loses power, for what SQLite writes: records all writes of a process, and makes the
/// files that a machine may find after it failed at any of them.
///
/// What was written to a file is certain once that file was synced. Of later writes, any may be
/// there, in sectors of 512 bytes, in any order; a file that was never synced may be absent, and
/// one that was removed may still be there. This is what SQLite counts on ("Atomic Commit In
/// SQLite", section 2), with neighbours of a sector that is being written unharmed ("powersafe
/// overwrite").
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace foreshard {

class LossyDisk {
 public:
  /// Records what SQLite writes from here on. Only one may exist at a time.
  LossyDisk();
  LossyDisk(const LossyDisk&) = delete;
  LossyDisk& operator=(const LossyDisk&) = delete;
  ~LossyDisk();

  /// Records nothing more. \pre All files that were opened since the beginning are closed.
  void stop();

  /// The number of writes, syncs and removals so far.
  std::size_t time() const;
  /// The times of all syncs.
  std::vector<std::size_t> syncs() const;

  /// Files, by their name in their folder, if power is lost at `time`.
  std::map<std::string, std::string> files_after_loss(std::size_t time, std::mt19937& random) const;

  struct Record;

 private:
  std::unique_ptr<Record> record_;
};

}  // namespace foreshard
