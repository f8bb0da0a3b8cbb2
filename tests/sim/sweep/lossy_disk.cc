#include "tests/sim/sweep/lossy_disk.h"

#include <algorithm>
#include <array>
#include <sqlite3.h>

#include "base/check.h"

namespace foreshard {
namespace lossy_disk {

constexpr std::size_t kSector = 512;

struct Change {
  enum class Kind : std::uint8_t { kWrite, kTruncate, kSync, kRemove };
  Kind kind;
  std::string file;
  std::size_t at = 0;  // kTruncate: the new size.
  std::string bytes{};
};

void apply(const Change& change, std::string& content) {
  if (change.kind == Change::Kind::kTruncate) return content.resize(change.at);
  if (content.size() < change.at + change.bytes.size())
    content.resize(change.at + change.bytes.size());
  content.replace(change.at, change.bytes.size(), change.bytes);
}

// The change in parts of which each may reach the disk alone.
void split(const Change& change, std::vector<Change>& parts) {
  if (change.kind != Change::Kind::kWrite) return parts.push_back(change);
  for (std::size_t begin = 0; begin < change.bytes.size();) {
    const std::size_t at = change.at + begin;
    const std::size_t size = std::min(kSector - at % kSector, change.bytes.size() - begin);
    parts.push_back({change.kind, change.file, at, change.bytes.substr(begin, size)});
    begin += size;
  }
}

struct Content {
  std::string certain;
  bool exists = false;            // Certainly.
  std::vector<Change> uncertain;  // Since the last sync.

  void take(const Change& change) {
    if (change.kind != Change::Kind::kSync) return uncertain.push_back(change);
    for (const Change& one : uncertain) apply(one, certain);
    uncertain.clear();
    exists = true;
  }

  // Of what is uncertain, each part is there with the probability `kept`.
  std::string after_loss(double kept, std::mt19937& random) const {
    std::vector<Change> parts;
    for (const Change& change : uncertain) split(change, parts);
    std::shuffle(parts.begin(), parts.end(), random);
    std::string content = certain;
    for (const Change& part : parts)
      if (std::bernoulli_distribution(kept)(random)) apply(part, content);
    return content;
  }
};

}  // namespace lossy_disk

using namespace lossy_disk;

struct LossyDisk::Record {
  sqlite3_vfs* disk = nullptr;  // The real one.
  sqlite3_vfs recorder{};
  std::vector<Change> changes;
};

namespace {

LossyDisk::Record* recording = nullptr;  // SQLite's calls have no other way to it.

// An open file: SQLite's part, the name, and behind it the file of the real disk.
struct File {
  sqlite3_file base;
  const char* path;
};

sqlite3_file* real(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<File*>(file) + 1);
}
std::string name_of(const char* path) {
  return std::filesystem::path(path).filename();
}
void add(sqlite3_file* file, Change::Kind kind, sqlite3_int64 at = 0, std::string bytes = {}) {
  recording->changes.push_back({kind, name_of(reinterpret_cast<File*>(file)->path),
                                static_cast<std::size_t>(at), std::move(bytes)});
}

const sqlite3_io_methods kMethods{
    .iVersion = 1,  // No shared memory: the log must do without.
    .xClose = [](sqlite3_file* file) { return real(file)->pMethods->xClose(real(file)); },
    .xRead = [](sqlite3_file* file, void* to, int size,
                sqlite3_int64 at) { return real(file)->pMethods->xRead(real(file), to, size, at); },
    .xWrite =
        [](sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
          add(file, Change::Kind::kWrite, at,
              {static_cast<const char*>(from), static_cast<std::size_t>(size)});
          return real(file)->pMethods->xWrite(real(file), from, size, at);
        },
    .xTruncate =
        [](sqlite3_file* file, sqlite3_int64 size) {
          add(file, Change::Kind::kTruncate, size);
          return real(file)->pMethods->xTruncate(real(file), size);
        },
    .xSync =
        [](sqlite3_file* file, int) {
          add(file, Change::Kind::kSync);
          return SQLITE_OK;
        },
    .xFileSize =
        [](sqlite3_file* file, sqlite3_int64* size) {
          return real(file)->pMethods->xFileSize(real(file), size);
        },
    .xLock = [](sqlite3_file* file,
                int lock) { return real(file)->pMethods->xLock(real(file), lock); },
    .xUnlock = [](sqlite3_file* file,
                  int lock) { return real(file)->pMethods->xUnlock(real(file), lock); },
    .xCheckReservedLock =
        [](sqlite3_file* file, int* held) {
          return real(file)->pMethods->xCheckReservedLock(real(file), held);
        },
    .xFileControl =
        [](sqlite3_file* file, int what, void* value) {
          return real(file)->pMethods->xFileControl(real(file), what, value);
        },
    .xSectorSize = [](sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); },
    .xDeviceCharacteristics =
        [](sqlite3_file* file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); },
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* flags_out) {
  FORESHARD_CHECK(recording != nullptr && path != nullptr);
  sqlite3_vfs* const disk = recording->disk;
  const int code = disk->xOpen(disk, path, real(file), flags, flags_out);
  file->pMethods = code == SQLITE_OK ? &kMethods : nullptr;
  reinterpret_cast<File*>(file)->path = path;
  return code;
}

int remove(sqlite3_vfs*, const char* path, int sync_folder) {
  recording->changes.push_back({Change::Kind::kRemove, name_of(path)});
  return recording->disk->xDelete(recording->disk, path, sync_folder);
}

}  // namespace

LossyDisk::LossyDisk() : record_(std::make_unique<Record>()) {
  FORESHARD_CHECK(recording == nullptr);
  record_->disk = sqlite3_vfs_find(nullptr);
  record_->recorder = *record_->disk;
  record_->recorder.zName = "lossy";
  record_->recorder.szOsFile += static_cast<int>(sizeof(File));
  record_->recorder.xOpen = &open;
  record_->recorder.xDelete = &remove;
  recording = record_.get();
  sqlite3_vfs_register(&record_->recorder, 1);
}

LossyDisk::~LossyDisk() {
  stop();
}

void LossyDisk::stop() {
  if (recording == nullptr) return;
  sqlite3_vfs_unregister(&record_->recorder);
  sqlite3_vfs_register(record_->disk, 1);
  recording = nullptr;
}

std::size_t LossyDisk::time() const {
  return record_->changes.size();
}

std::vector<std::size_t> LossyDisk::syncs() const {
  std::vector<std::size_t> times;
  for (std::size_t i = 0; i < record_->changes.size(); ++i)
    if (record_->changes[i].kind == Change::Kind::kSync) times.push_back(i);
  return times;
}

std::map<std::string, std::string> LossyDisk::files_after_loss(std::size_t time,
                                                               std::mt19937& random) const {
  std::map<std::string, std::vector<Content>>
      all;  // A file that was removed comes before new ones.
  for (std::size_t i = 0; i < time; ++i) {
    const Change& change = record_->changes[i];
    auto& contents = all[change.file];
    if (contents.empty()) contents.emplace_back();
    if (change.kind == Change::Kind::kRemove)
      contents.emplace_back();
    else
      contents.back().take(change);
  }
  constexpr std::array<double, 5> kKept{0, 0.1, 0.5, 0.9, 1};
  const double kept = kKept[random() % kKept.size()];
  std::map<std::string, std::string> files;
  for (const auto& [name, contents] : all) {
    const bool new_one = contents.back().exists || contents.size() == 1 || random() % 2 == 0;
    const Content& content = new_one ? contents.back() : contents[contents.size() - 2];
    const bool there = content.exists || (!content.uncertain.empty() && random() % 2 == 0);
    if (there) files[name] = content.after_loss(kept, random);
  }
  return files;
}

}  // namespace foreshard
