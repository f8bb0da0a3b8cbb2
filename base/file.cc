#include "base/file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/quantity.h"

namespace foreshard {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

constexpr const char* kStdin = "-";

Error fault(const std::filesystem::path& path, const std::string& what) {
  return Error{Error::Code::kIo, (path == kStdin ? "stdin" : path.string()) + ": " + what};
}

Error system_fault(const std::filesystem::path& path, const char* verb) {
  return fault(path, std::string("cannot ") + verb + ": " + std::strerror(errno));
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Error too_large(const std::filesystem::path& path, Bytes limit) {
  return fault(path, "is larger than the limit of " + format(limit) + "; " + limits::kRemedy);
}

// What a file is that cannot be read as a whole; nothing for one that can. `limit` is its largest
// size.
std::optional<Error> unreadable(const struct stat& status, const std::filesystem::path& path,
                                Bytes limit) {
  if (S_ISDIR(status.st_mode)) return fault(path, "is a directory, not a file");
  if (S_ISFIFO(status.st_mode)) return fault(path, "is a pipe, not a file");
  if (!S_ISREG(status.st_mode)) return fault(path, "is a device, not a file");
  const auto size = Bytes::from_base(static_cast<double>(status.st_size));
  if (size > limit) return too_large(path, limit);
  constexpr double kBlock = 512;  // the unit of st_blocks
  const auto held = Bytes::from_base(kBlock * static_cast<double>(status.st_blocks));
  if (size > limits::raised(limits::kSmall) && size > held * limits::kRatio * limits::factor())
    return fault(path, "is a sparse file of " + format(size) + ", of which the disk holds " +
                           format(held) + "; copy it anew");
  return std::nullopt;
}

Result<std::string> read_all(int fd, const std::filesystem::path& path, Bytes largest,
                             std::size_t expected = 0) {
  const auto limit = static_cast<std::size_t>(largest.in_base());
  std::string bytes;
  bytes.reserve(expected);
  char block[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_fault(path, "read");
    if (n == 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(n));
    if (bytes.size() > limit) return too_large(path, largest);
  }
}

// stdin can be read once; a command may need its text twice, to find out what it is and to read it.
const Result<std::string>& read_stdin(Bytes largest) {
  static const Result<std::string> text = read_all(STDIN_FILENO, kStdin, largest);
  return text;
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, Bytes largest) {
  largest = limits::raised(largest);
  if (path == kStdin) return read_stdin(largest);
  // Not blocking: a named pipe without a writer is refused below instead of waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return system_fault(path, "open");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_fault(path, "read");
  if (auto why = unreadable(status, path, largest)) return *std::move(why);
  return read_all(file.get(), path, largest, static_cast<std::size_t>(status.st_size));
}

bool is_special(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

std::filesystem::path behind_links(const std::filesystem::path& path) {
  std::error_code no_such_file;
  const auto target = std::filesystem::canonical(path, no_such_file);
  return no_such_file ? path : target;
}

Status write_file(const std::filesystem::path& link, std::string_view bytes) {
  const std::filesystem::path path = behind_links(link);
  if (is_special(path)) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0 || !write_all(file.get(), bytes) || !file.close())
      return system_fault(path, "write");
    return {};
  }
  // Exclusive creation picks a name that no other thread or process writes to.
  std::string aside;
  int fd = -1;
  for (int attempt = 0; fd < 0; ++attempt) {
    aside = path.string() + ".new-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    fd = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) return system_fault(path, "write");
  }
  Descriptor file(fd);
  const auto give_up = [&](const char* verb) {
    const Error error = system_fault(path, verb);
    ::unlink(aside.c_str());
    return error;
  };
  if (!write_all(file.get(), bytes) || ::fsync(file.get()) != 0) return give_up("write");
  if (!file.close()) return give_up("write");
  if (::rename(aside.c_str(), path.c_str()) != 0) return give_up("replace");
  return {};
}

}  // namespace foreshard
