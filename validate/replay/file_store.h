/// \file
/// The store as a folder that all ranks see: where ranks cannot reach each other by TCP. One file
/// per key, written aside and renamed, so that a reader sees all of it or nothing. A rank that dies
/// is noticed by those of its own host only; the watchdog finds the others.
///
/// Not for thousands of ranks: each wait asks the file system up to 500 times a second at first, 20
/// later. Network file systems may show new files late (NFS: up to a minute, see nfs(5), acdirmax).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"

#include "validate/replay/store.h"

namespace foreshard::replay {

struct FileStoreOptions {
  std::filesystem::path folder{};  ///< Rank 0 makes it if it is not there; empty at the beginning.
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  JobKey job{};
  Seconds patience = 60_s;  ///< For rank 0 to be there.
};

/// The last rank to leave empties the folder, if none has ended early.
/// \return kIo if the folder cannot be used, kInvalidInput if it holds what an earlier run left,
///     the ranks' jobs differ, or two ranks have one number.
Result<std::unique_ptr<Store>> open_file_store(const FileStoreOptions& options);

}  // namespace foreshard::replay
