/// \file
/// Converts a checkpoint on disk from one set of layouts to another. Every target file is written
/// from front to back out of the source slices that intersect it.
///
/// - *Memory*: blocks of a fixed size, whatever the tensors' sizes.
/// - *Source*: only read. The files that are needed are hashed first and compared with the
///   manifest; nothing is written until all of them are right.
/// - *Atomic*: all is written to OUT.partial, and each file is flushed to the device; the directory
///   gets its name at the very end. OUT is either as it was or complete.
/// - *Resumable*: OUT.partial/journal names every finished file with its digest. A second run of
///   the same conversion hashes these files again, keeps the right ones and makes the rest.
/// - *Digests* are taken of the bytes on their way to the file. Reading them back would prove no
///   more: right after writing, the same bytes would come back from the kernel's memory, while
///   flushing tells whether the device took them. Later readers compare with the manifest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/checkpoint/source.h"

namespace foreshard::checkpoint {

/// What a checkpoint is to become.
struct Target {
  FileFormat format = FileFormat::kSafetensors;
  std::string origin{};
  std::vector<TensorEntry> tensors{};
  /// Tensors of the source that are left out of it. A source tensor in neither list is an error.
  std::vector<std::string> left_out{};
};

/// One file to be written.
struct TargetFile {
  std::int32_t rank = 0;
  struct Slice {
    std::int32_t tensor = 0;  ///< Index into Target::tensors.
    Box box{};
  };
  std::vector<Slice> slices{};
  std::string header{};
  std::int64_t bytes = 0;  ///< Header included.
};

/// A conversion that can be done.
struct ConversionPlan {
  Source source{};
  Target target{};
  std::vector<std::int32_t> source_tensors{};  ///< target tensor -> its index in the source.
  std::vector<std::int32_t> files_read{};      ///< Indices of source files, ascending.
  std::vector<TargetFile> files{};             ///< Ascending by rank.
  std::int64_t bytes_to_verify = 0;            ///< Bytes of source files with a stated digest.
  std::int64_t bytes_to_write = 0;
  std::string identity{};  ///< Digest of source and target; equal for the same conversion.
};

/// \return kInvalidInput if a target entry has a fault, is not in the source, has another type or
///     shape there (apart from padding: then both must have the same unpadded shape), if a source
///     tensor is in neither list, or if all replicas of a slice that is needed are lost;
///     kInfeasible never.
Result<ConversionPlan> plan_conversion(Source source, Target target);

struct ConvertOptions {
  Bytes max_memory = 256_MiB;  ///< Limit on buffers; other memory is a few megabytes.
  std::int32_t threads = 0;    ///< Number of threads; 0: one per core, at most 8.
  bool replace = false;        ///< If OUT is already a checkpoint, it is replaced.
  /// Called from any thread with the bytes that were verified or written.
  std::function<void(std::int64_t)> progress{};
};

struct ConversionResult {
  bool was_there = false;         ///< OUT held this conversion already: nothing was done.
  std::int64_t files = 0;         ///< Files in OUT.
  std::int64_t files_reused = 0;  ///< Files that an earlier run had finished.
  std::int64_t bytes_read = 0;    ///< Bytes read, without the hashing of the source.
  std::int64_t bytes_written = 0;
};

/// Carries out the plan.
/// \return kInvalidInput if `out` exists (and may not be replaced, or is not a checkpoint),
///     is inside the source, or OUT.partial belongs to another conversion; if a source file's
///     digest is wrong; if `max_memory` is less than 1 MiB. kIo where the system refuses: no
///     space, a broken disk. OUT is then as it was; OUT.partial is kept for the next run if a file
///     in it is finished.
Result<ConversionResult> convert(const ConversionPlan& plan, const std::filesystem::path& out,
                                 const ConvertOptions& options = {});

/// "rank-00012.safetensors".
std::string shard_name(std::int32_t rank, FileFormat format);
/// The directory in which a conversion to `out` is prepared.
std::filesystem::path partial_of(const std::filesystem::path& out);
inline constexpr std::string_view kJournalName = "journal";

}  // namespace foreshard::checkpoint
