#include "strategies/checkpoint/convert.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <thread>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/quantity.h"
#include "base/result.h"
#include "base/threads.h"

#include "strategies/checkpoint/files.h"
#include "strategies/checkpoint/hugging_face.h"
#include "strategies/checkpoint/internal/gather.h"
#include "strategies/checkpoint/manifest.h"
#include "strategies/program/ir/json_node.h"

namespace foreshard::checkpoint::internal {
namespace {

// The journal of what a conversion has finished, in case it is interrupted: one line of JSON for
// each file, appended and flushed after the file itself. A line that was cut off is ignored.

class Journal {
 public:
  /// Opens or begins the journal in `directory` and locks it against a second run.
  /// \return kInvalidInput if it belongs to a conversion other than `identity`, or another process
  ///     has it; kIo.
  static Result<Journal> open(const std::filesystem::path& directory, const std::string& identity);

  /// path -> file, for files that were finished before the journal was opened.
  const std::map<std::string, ShardFile>& finished() const { return finished_; }

  /// Thread-safe.
  Status add(const ShardFile& file);

 private:
  Status append(const std::string& line);

  std::filesystem::path path_;
  Descriptor file_;
  std::map<std::string, ShardFile> finished_;
  std::unique_ptr<std::mutex> adding_ = std::make_unique<std::mutex>();
};

using program::JsonNode;
using Json = nlohmann::json;

ShardFile file_from(const JsonNode& node) {
  node.fields({"rank", "path", "bytes", "sha256"});
  return {.rank = static_cast<std::int32_t>(
              node["rank"].integer(0, std::numeric_limits<std::int32_t>::max())),
          .path = node["path"].text(),
          .bytes = node["bytes"].integer(0, std::numeric_limits<std::int64_t>::max()),
          .sha256 = node["sha256"].text()};
}

Result<Journal> Journal::open(const std::filesystem::path& directory, const std::string& identity) {
  Journal journal;
  journal.path_ = directory / kJournalName;
  journal.file_ =
      Descriptor(::open(journal.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (journal.file_.get() < 0) return system_fault(journal.path_, "open");
  if (::flock(journal.file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_fault(journal.path_, "lock");
    return Error{Error::Code::kInvalidInput,
                 directory.string() + ": another conversion is writing there"};
  }
  FORESHARD_ASSIGN(const auto text, read_file(journal.path_, limits::kManifest));
  const std::string first = Json{{"conversion", identity}}.dump() + "\n";
  std::size_t at = text.find('\n');
  if (at == std::string::npos) {  // new, or cut off in its first line
    if (::ftruncate(journal.file_.get(), 0) != 0) return system_fault(journal.path_, "write");
    FORESHARD_TRY(journal.append(first));
    FORESHARD_TRY(flush_directory(directory));
    return journal;
  }
  ++at;
  if (text.substr(0, at) != first)
    return Error{Error::Code::kInvalidInput,
                 directory.string() +
                     ": was left by another conversion (or its source has "
                     "changed since); remove it, or choose another place"};
  for (;;) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    try {
      const Json line = program::parse_strictly(std::string_view(text).substr(at, end - at));
      ShardFile file = file_from(JsonNode(line));
      journal.finished_[file.path] = std::move(file);
    } catch (const program::JsonFault&) {
      break;  // garbage after a crash: later lines are not reliable either
    }
    at = end + 1;
  }
  if (::ftruncate(journal.file_.get(), static_cast<off_t>(at)) != 0)
    return system_fault(journal.path_, "write");
  return journal;
}

Status Journal::add(const ShardFile& file) {
  const std::scoped_lock lock(*adding_);
  return append(
      Json{{"rank", file.rank}, {"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}}
          .dump() +
      "\n");
}

Status Journal::append(const std::string& line) {
  std::string_view rest = line;
  if (::lseek(file_.get(), 0, SEEK_END) < 0) return system_fault(path_, "write");
  while (!rest.empty()) {
    const ssize_t n = ::write(file_.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_fault(path_, "write");
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(file_.get()) != 0) return system_fault(path_, "write");
  return {};
}

}  // namespace
}  // namespace foreshard::checkpoint::internal

namespace foreshard::checkpoint {
namespace {

namespace fs = std::filesystem;
using internal::Journal;

// Blocks that stay in a core's cache between reading, hashing and writing are the fastest.
constexpr std::int64_t kMostBlock = 1 << 20;
constexpr std::int64_t kLeastBlock = 256 << 10;

// \pre both absolute and normal
bool is_below(const fs::path& inner, const fs::path& outer) {
  const fs::path way = inner.lexically_relative(outer);
  return !way.empty() && *way.begin() != "..";
}

// Number of threads, and bytes of each of a thread's two buffers.
struct Buffers {
  std::int32_t threads = 1;
  std::int64_t block = kMostBlock;
};
Buffers buffers_for(Bytes max_memory, std::int32_t wanted_threads) {
  const auto memory = static_cast<std::int64_t>(std::min(max_memory, 1e6 * 1_GB).in_base());
  const std::int64_t most = std::clamp<std::int64_t>(memory / (2 * kLeastBlock), 1, 1024);
  std::int64_t threads = wanted_threads;
  if (threads <= 0) threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 8);
  threads = std::min(threads, most);
  return {static_cast<std::int32_t>(threads), std::min(kMostBlock, memory / (2 * threads))};
}

// Runs `work(index, worker)` for all indices below `count` on several threads. The first fault ends
// the run; `stop` tells running work that there was a fault.
class Workers {
 public:
  explicit Workers(const Buffers& buffers) : buffers_(buffers) {}

  using Work =
      std::function<Status(std::size_t index, std::span<char> block, std::span<char> bounce)>;
  Status run(std::size_t count, const Work& work) {
    next_ = 0;
    stopped_ = false;
    error_ = {};
    const auto wanted = std::min<std::int64_t>(buffers_.threads, static_cast<std::int64_t>(count));
    in_threads(wanted, [&](std::int64_t) { work_through(count, work); });
    return std::move(error_);
  }
  bool stopped() const { return stopped_; }

 private:
  void work_through(std::size_t count, const Work& work) {
    std::vector<char> block(static_cast<std::size_t>(buffers_.block));
    std::vector<char> bounce(static_cast<std::size_t>(buffers_.block));
    for (std::size_t i = next_++; i < count && !stopped_; i = next_++) {
      auto error = work(i, block, bounce);
      if (error.ok()) continue;
      const std::scoped_lock lock(failing_);
      if (error_.ok()) error_ = std::move(error);
      stopped_ = true;
    }
  }

  Buffers buffers_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex failing_;
  Status error_;
};

class Converter {
 public:
  Converter(const ConversionPlan& plan, fs::path out, const ConvertOptions& options)
      : plan_(plan),
        out_(std::move(out)),
        partial_(partial_of(out_)),
        options_(options),
        workers_(buffers_for(options.max_memory, options.threads)) {
    for (const SourceFile& file : plan.source.files) paths_.push_back(file.path);
  }

  Result<ConversionResult> run() {
    FORESHARD_TRY(look_at_target());
    if (result_.was_there) return result_;
    FORESHARD_TRY(verify_source());
    FORESHARD_TRY(begin());
    if (Status error = make_files(); !error.ok()) {
      if (!any_finished_ && is_new_)
        discard();
      else
        error.error().message +=
            fmt::format(" ({} keeps what is finished for a next run)", partial_.string());
      return std::move(error).error();
    }
    FORESHARD_TRY(finish());
    return result_;
  }

 private:
  // --- before anything is written ----------------------------------------------------------
  Status look_at_target() {
    if (options_.max_memory < 1_MiB)
      return Error{Error::Code::kInvalidInput,
                   fmt::format("a conversion needs at least 1 MiB of memory, not {}",
                               format(options_.max_memory))};
    std::error_code error;
    const fs::path source = fs::weakly_canonical(plan_.source.directory, error);
    const fs::path target = fs::weakly_canonical(out_, error);
    if (target == source) return fault(out_, "is the source itself, which is only read");
    if (is_below(target, source)) return fault(out_, "is inside the source, which is only read");
    if (is_below(source, target) || is_below(source, partial_of(target)))
      return fault(out_, "has the source in it or beside it as " + partial_.filename().string() +
                             ", and would replace it; choose another place");
    const auto status = fs::symlink_status(out_, error);
    exists_ = fs::exists(status);
    if (!exists_) return {};
    if (!fs::is_directory(status)) return fault(out_, "exists and is not a directory");
    const auto text = read_file(out_ / kManifestName, limits::kManifest);
    const auto manifest = text ? manifest_from_json(*text) : Result<Manifest>(text.error());
    if (!manifest)
      return fault(
          out_,
          "exists and is not a complete checkpoint, so it is not replaced; choose another place");
    if (manifest->conversion == plan_.identity && is_complete(*manifest)) {
      if (Status damage = damage_in(*manifest); !damage.ok()) {
        damage.error().message += "; --force starts again";
        if (!options_.replace) return damage;
        return foreign(*manifest);
      }
      result_.was_there = true;
      result_.files = static_cast<std::int64_t>(manifest->files.size());
      fs::remove(out_ / kJournalName, error);
      return {};
    }
    if (!options_.replace)
      return fault(out_, "exists already; --force replaces it, once the new one is complete");
    return foreign(*manifest);
  }

  // Refuses to replace a directory that has other files than the checkpoint's: all would be lost.
  Status foreign(const Manifest& manifest) const {
    std::set<std::string> own{std::string(kManifestName), std::string(kJournalName),
                              std::string(kHfIndexName)};
    for (const ShardFile& file : manifest.files) own.insert(file.path);
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(out_, error))
      if (!own.contains(entry.path().filename().string()))
        return fault(entry.path(),
                     "is not part of the checkpoint that --force would replace; move it away");
    if (error) return Error{Error::Code::kIo, out_.string() + ": cannot read: " + error.message()};
    return {};
  }

  bool is_complete(const Manifest& manifest) const {
    return std::ranges::all_of(manifest.files, [&](const ShardFile& file) {
      std::error_code error;
      const auto bytes = fs::file_size(out_ / file.path, error);
      return !error && bytes == static_cast<std::uintmax_t>(file.bytes);
    });
  }

  // A fault for the first file of an existing target whose contents differ from the manifest.
  // \pre is_complete(manifest)
  Status damage_in(const Manifest& manifest) {
    return workers_.run(manifest.files.size(),
                        [&](std::size_t i, std::span<char> block, std::span<char>) -> Status {
                          const ShardFile& file = manifest.files[i];
                          FORESHARD_ASSIGN(const auto digest,
                                           digest_of(out_ / file.path, block, options_.progress));
                          if (digest == file.sha256) return {};
                          return fault(
                              out_ / file.path,
                              fmt::format("is damaged: its SHA-256 is {}, the manifest says {}",
                                          digest, file.sha256));
                        });
  }

  Status verify_source() {
    return workers_.run(
        plan_.files_read.size(),
        [&](std::size_t i, std::span<char> block, std::span<char>) -> Status {
          const SourceFile& file =
              plan_.source.files[static_cast<std::size_t>(plan_.files_read[i])];
          if (file.sha256.empty()) return {};
          FORESHARD_ASSIGN(const auto digest, digest_of(file.path, block, options_.progress));
          if (digest == file.sha256) return {};
          return fault(file.path, fmt::format("is damaged: its SHA-256 is {}, the manifest says {}",
                                              digest, file.sha256));
        });
  }

  // --- writing -----------------------------------------------------------------------------
  Status begin() {
    std::error_code error;
    is_new_ = fs::create_directory(partial_, error);
    if (error)
      return Error{Error::Code::kIo, partial_.string() + ": cannot create: " + error.message()};
    if (!is_new_ && !fs::exists(partial_ / kJournalName, error) && !fs::is_empty(partial_, error))
      return fault(partial_, "is in the way: no conversion left it; remove it");
    FORESHARD_ASSIGN(auto journal, Journal::open(partial_, plan_.identity));
    journal_ = std::make_unique<Journal>(std::move(journal));
    any_finished_ = !journal_->finished().empty();
    done_.resize(plan_.files.size());
    return enough_space();
  }

  Status enough_space() {
    double needed = 0;
    for (const TargetFile& file : plan_.files)
      if (!recorded(file)) needed += static_cast<double>(file.bytes);
    struct statvfs space {};
    if (::statvfs(partial_.c_str(), &space) != 0) return {};  // unknown: writing will tell
    const double free = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
    // Unfinished files of an earlier run are overwritten, so their space counts as free.
    double reclaimed = 0;
    for (const TargetFile& file : plan_.files) {
      std::error_code error;
      const auto bytes = fs::file_size(partial_ / name_of_file(file), error);
      if (!error && !recorded(file)) reclaimed += static_cast<double>(bytes);
    }
    if (needed <= free + reclaimed) return {};
    Error error{
        Error::Code::kIo,
        fmt::format("{}: no space: the conversion writes {}, and {} are free", out_.string(),
                    format(Bytes::from_base(needed)), format(Bytes::from_base(free + reclaimed)))};
    if (is_new_) discard();
    return error;
  }

  std::string name_of_file(const TargetFile& file) const {
    return shard_name(file.rank, plan_.target.format);
  }
  const ShardFile* recorded(const TargetFile& file) const {
    const auto it = journal_->finished().find(name_of_file(file));
    return it != journal_->finished().end() && it->second.bytes == file.bytes ? &it->second
                                                                              : nullptr;
  }

  Status make_files() {
    return workers_.run(
        plan_.files.size(),
        [&](std::size_t i, std::span<char> block, std::span<char> bounce) -> Status {
          const TargetFile& file = plan_.files[i];
          ShardFile& done = done_[i];
          done = {.rank = file.rank, .path = name_of_file(file), .bytes = file.bytes};
          if (const ShardFile* const before = recorded(file)) {
            const auto digest = digest_of(partial_ / done.path, block, options_.progress);
            if (digest && *digest == before->sha256) {
              done.sha256 = *digest;
              ++files_reused_;
              return {};
            }
          }
          FORESHARD_ASSIGN(done.sha256, make(file, block, bounce));
          FORESHARD_TRY(journal_->add(done));
          any_finished_ = true;
          return {};
        });
  }

  Result<std::string> make(const TargetFile& file, std::span<char> block, std::span<char> bounce) {
    FORESHARD_ASSIGN(OutputFile out, OutputFile::create(partial_ / name_of_file(file)));
    FORESHARD_TRY(out.append(file.header));

    internal::Gatherer gatherer(paths_, bounce);
    std::size_t filled = 0;
    Status error;
    const auto flush = [&] {
      error = out.append({block.data(), filled});
      if (error.ok() && options_.progress) options_.progress(static_cast<std::int64_t>(filled));
      filled = 0;
    };
    for (const TargetFile::Slice& slice : file.slices) {
      const auto t = static_cast<std::size_t>(slice.tensor);
      const TensorEntry& entry = plan_.target.tensors[t];
      const SourceTensor& source =
          plan_.source.tensors[static_cast<std::size_t>(plan_.source_tensors[t])];
      auto slices = internal::distinct_slices(source);
      std::erase_if(slices, [&](const internal::SourceSlice& from) {
        return intersection(from.box, slice.box).elements() == 0;
      });
      // Padding is copied unchanged, unless its extent changes.
      const Box valid = whole_of(source.entry.shape == entry.shape ? entry.shape : entry.logical());
      const std::int64_t element = size_of(entry.type);
      const auto visit = [&](const Box& part) {
        const auto bytes = static_cast<std::size_t>(part.elements() * element);
        if (!error.ok() || workers_.stopped()) return;
        if (filled + bytes > block.size()) flush();
        if (!error.ok()) return;
        error = gatherer.gather(slices, valid, element, part, block.subspan(filled, bytes));
        filled += bytes;
      };
      if (slice.box.elements() > 0)
        internal::for_each_part(slice.box, element, static_cast<std::int64_t>(block.size()), visit);
      FORESHARD_TRY(error);
      if (workers_.stopped()) return Error{Error::Code::kIo, "stopped"};
    }
    flush();
    FORESHARD_TRY(error);
    FORESHARD_CHECK(out.bytes() == file.bytes);
    bytes_read_ += gatherer.bytes_read();
    bytes_written_ += out.bytes();
    return out.finish();
  }

  // --- the end -----------------------------------------------------------------------------
  Status finish() {
    const Manifest manifest{.format = plan_.target.format,
                            .origin = plan_.target.origin,
                            .conversion = plan_.identity,
                            .files = done_,
                            .tensors = plan_.target.tensors};
    if (const auto index = hf_index(plan_))
      FORESHARD_TRY(write_file(partial_ / kHfIndexName, *index));
    FORESHARD_TRY(write_file(partial_ / kManifestName, to_json(manifest)));
    FORESHARD_TRY(flush_directory(partial_));
    const unsigned how = exists_ ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, out_.c_str(), how) != 0)
      return system_fault(out_, "rename " + partial_.string() + " to it");
    std::error_code ignored;
    FORESHARD_TRY(flush_directory(fs::absolute(out_, ignored).parent_path()));
    fs::remove(out_ / kJournalName, ignored);
    if (exists_) fs::remove_all(partial_, ignored);  // this is the old checkpoint by now
    result_.files = static_cast<std::int64_t>(done_.size());
    result_.files_reused = files_reused_;
    result_.bytes_read = bytes_read_;
    result_.bytes_written = bytes_written_;
    return {};
  }

  void discard() {
    std::error_code ignored;
    fs::remove_all(partial_, ignored);
  }

  const ConversionPlan& plan_;
  const fs::path out_;
  const fs::path partial_;
  const ConvertOptions& options_;
  Workers workers_;
  std::vector<fs::path> paths_;
  bool exists_ = false;
  bool is_new_ = false;
  std::atomic<bool> any_finished_{false};
  std::unique_ptr<Journal> journal_;
  std::vector<ShardFile> done_;
  std::atomic<std::int64_t> files_reused_{0};
  std::atomic<std::int64_t> bytes_read_{0};
  std::atomic<std::int64_t> bytes_written_{0};
  ConversionResult result_;
};

}  // namespace

Result<ConversionResult> convert(const ConversionPlan& plan, const fs::path& out,
                                 const ConvertOptions& options) {
  // "out/", "out/." and "out" are the same place; the name of OUT.partial is made from "out".
  const fs::path normal = out.lexically_normal();
  const fs::path place = normal.has_filename() ? normal : normal.parent_path();
  if (place.empty()) return Error{Error::Code::kInvalidInput, "the target directory has no name"};
  return Converter(plan, place, options).run();
}

}  // namespace foreshard::checkpoint
