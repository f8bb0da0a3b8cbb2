// Files of checkpoints, for the readers and the conversion of this folder (source.cc, convert.cc).
// Offsets and sizes are bytes. An interrupted system call is repeated; a file that is cut short
// while it is read is an error; a digest is the SHA-256 in 64 hexadecimal digits.
#include "strategies/checkpoint/files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"

namespace foreshard::checkpoint {

Error system_fault(const std::filesystem::path& path, std::string_view verb) {
  return {Error::Code::kIo,
          path.string() + ": cannot " + std::string(verb) + ": " + std::strerror(errno)};
}

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
  InputFile input;
  input.path_ = path;
  // Does not block: a named pipe without a writer must be refused below, not waited for.
  input.file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (input.file_.get() < 0 && errno == ENOENT)
    return Error{Error::Code::kInvalidInput, path.string() + ": is missing"};
  if (input.file_.get() < 0) return system_fault(path, "open");
  struct stat status {};
  if (::fstat(input.file_.get(), &status) != 0) return system_fault(path, "read");
  if (!S_ISREG(status.st_mode))
    return Error{Error::Code::kInvalidInput, path.string() + ": is not a regular file"};
  FORESHARD_TRY(note_input(path));
  input.bytes_ = status.st_size;
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  input.modified_ = status.st_mtim.tv_sec * kNanosecondsPerSecond + status.st_mtim.tv_nsec;
  return input;
}

Status InputFile::read(std::int64_t offset, std::span<char> to) const {
  while (!to.empty()) {
    const ssize_t n = ::pread(file_.get(), to.data(), to.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_fault(path_, "read");
    if (n == 0)
      return Error{Error::Code::kIo, path_.string() + ": ends at byte " + std::to_string(offset) +
                                         ", although it had " + std::to_string(bytes_) +
                                         " bytes when it was opened: it is being changed"};
    to = to.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
  return {};
}

Result<const InputFile*> OpenFiles::at(std::int32_t index) {
  const auto it = std::ranges::find(recent_, index, &Entry::index);
  if (it != recent_.end()) {
    recent_.splice(recent_.begin(), recent_, it);
    return &recent_.front().file;
  }
  FORESHARD_ASSIGN(auto file, InputFile::open((*paths_)[static_cast<std::size_t>(index)]));
  if (recent_.size() == kMostOpenFiles) recent_.pop_back();
  recent_.push_front({index, std::move(file)});
  return &recent_.front().file;
}

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) {
  OutputFile output;
  output.path_ = path;
  output.file_ =
      Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (output.file_.get() < 0) return system_fault(path, "create");
  return output;
}

Status OutputFile::append(std::string_view bytes) {
  digest_.update(bytes);
  const std::int64_t begin = bytes_;
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_fault(path_, "write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
    bytes_ += n;
  }
  // Lets the device begin to write now, so that finish() has little left to wait for. This is a
  // hint: where the system does not support it, fsync does all the work.
  ::sync_file_range(file_.get(), begin, bytes_ - begin, SYNC_FILE_RANGE_WRITE);
  return {};
}

Result<std::string> OutputFile::finish() {
  if (::fsync(file_.get()) != 0) return system_fault(path_, "write");
  if (::close(file_.release()) != 0) return system_fault(path_, "write");
  return digest_.finish();
}

Result<std::string> digest_of(const std::filesystem::path& path, std::span<char> buffer,
                              const std::function<void(std::int64_t)>& progress) {
  FORESHARD_CHECK(!buffer.empty());  // else no piece of the file would ever be read
  FORESHARD_ASSIGN(const auto file, InputFile::open(path));
  Sha256 digest;
  for (std::int64_t at = 0; at < file.bytes();) {
    const auto rest = static_cast<std::size_t>(file.bytes() - at);
    const auto piece = buffer.first(std::min(buffer.size(), rest));
    FORESHARD_TRY(file.read(at, piece));
    digest.update({piece.data(), piece.size()});
    at += static_cast<std::int64_t>(piece.size());
    if (progress) progress(static_cast<std::int64_t>(piece.size()));
  }
  return digest.finish();
}

Status flush_directory(const std::filesystem::path& path) {
  const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return system_fault(path, "open");
  // Some file systems cannot flush a directory and need not.
  if (::fsync(directory.get()) != 0 && errno != EINVAL) return system_fault(path, "write");
  return {};
}

}  // namespace foreshard::checkpoint
