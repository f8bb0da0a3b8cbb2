#include "base/file.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/caller.h"
#include "base/descriptor.h"
#include "base/limits.h"
#include "base/quantity.h"

namespace foreshard {
namespace {

constexpr const char* kStdin = "-";

Error fault(const std::filesystem::path& path, const std::string& what) {
  return Error{Error::Code::kIo, (path == kStdin ? "stdin" : path.string()) + ": " + what};
}

Error system_fault(const std::filesystem::path& path, const char* verb) {
  return fault(path, std::string("cannot ") + verb + ": " + std::strerror(errno));
}

ProtectedFiles::Id id_of(const struct stat& status) {
  return {status.st_dev, status.st_ino};
}

ProtectedFiles& protected_files() {
  static ProtectedFiles of_program;
  return current_caller == nullptr ? of_program : current_caller->files;
}

Status note(const std::filesystem::path& path, const struct stat& status) {
  ProtectedFiles& files = protected_files();
  const std::lock_guard lock(files.mutex);
  if (!files.on || !S_ISREG(status.st_mode)) return {};
  if (const auto output = files.outputs.find(id_of(status)); output != files.outputs.end())
    return Error{Error::Code::kInvalidInput,
                 fault(path, "is to be read, but " + output->second +
                                 " names it, too; give the result its own file")
                     .message};
  files.inputs.insert(id_of(status));
  return {};
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
  struct stat status {};
  largest = limits::raised(largest);
  if (path == kStdin && current_caller != nullptr) {
    if (current_caller->input.size() > static_cast<std::size_t>(largest.in_base()))
      return too_large(path, largest);
    return current_caller->input;
  }
  if (path == kStdin) {
    if (::fstat(STDIN_FILENO, &status) == 0) FORESHARD_TRY(note(path, status));
    return read_stdin(largest);
  }
  // Not blocking: a named pipe without a writer is refused below instead of waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return system_fault(path, "open");
  if (::fstat(file.get(), &status) != 0) return system_fault(path, "read");
  if (auto why = unreadable(status, path, largest)) return *std::move(why);
  FORESHARD_TRY(note(path, status));
  return read_all(file.get(), path, largest, static_cast<std::size_t>(status.st_size));
}

void protect_inputs(const std::vector<NamedOutput>& outputs) {
  ProtectedFiles& files = protected_files();
  const std::lock_guard lock(files.mutex);
  files.on = true;
  for (const auto& [option, path] : outputs) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) files.outputs.emplace(id_of(status), option);
  }
}

Status note_input(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? note(path, status) : Status();
}

namespace {

// Where a path leads.
struct Target {
  std::filesystem::path path;
  std::optional<int> descriptor;  // It is an open file of this process.
};

Target target_of(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  std::error_code fault;
  const auto open_files = std::filesystem::canonical("/proc/self/fd", fault);
  for (int i = 0; i < kMostLinks; ++i) {
    auto folder = std::filesystem::canonical(
        path.has_parent_path() ? path.parent_path() : std::filesystem::path("."), fault);
    if (fault) break;
    const std::string name = path.filename().string();
    if (folder == open_files && !name.empty() && name.size() < 6 &&
        name.find_first_not_of("0123456789") == std::string::npos)
      return {path, std::stoi(name)};
    const auto next = std::filesystem::read_symlink(path, fault);
    if (fault) break;
    path = folder / next;
  }
  return {path, std::nullopt};
}

}  // namespace

std::filesystem::path behind_links(const std::filesystem::path& path) {
  return target_of(path).path;
}

bool is_special(const std::filesystem::path& path) {
  struct stat status {};
  return target_of(path).descriptor || (::stat(path.c_str(), &status) == 0 &&
                                        !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

namespace {

bool was_read(const struct stat& status) {
  const std::lock_guard lock(protected_files().mutex);
  return protected_files().inputs.contains(id_of(status));
}

std::string name_of(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace

namespace internal {

// While it lives, SIGINT, SIGTERM and SIGHUP wait: the first that comes is raised at the end. A
// second one ends the process at once.
class HeldSignals {
 public:
  HeldSignals() {
    const std::lock_guard lock(mutex);
    if (depth++ > 0) return;
    caught = 0;
    struct sigaction action {};
    action.sa_handler = hold;
    action.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &action, &before[i]);
      if (before[i].sa_handler == SIG_IGN) ::sigaction(kSignals[i], &before[i], nullptr);
    }
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() {
    const std::lock_guard lock(mutex);
    if (--depth > 0) return;
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before[i], nullptr);
    if (caught != 0) ::raise(caught);
  }

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

  static void hold(int signal) {
    if (caught != 0) ::_exit(128 + signal);
    caught = signal;
  }

  static inline std::mutex mutex;
  static inline int depth = 0;
  static inline volatile std::sig_atomic_t caught = 0;
  static inline std::array<struct sigaction, kSignals.size()> before{};
};

}  // namespace internal

struct NewFile::State {
  std::filesystem::path path;
  std::filesystem::path beside;  // Its name until it is complete, where it needs one.
  Descriptor file{};
  bool in_place = false;
  std::optional<internal::HeldSignals> held{};  // It has the name `beside`.

  State(const State&) = delete;
  State& operator=(const State&) = delete;
  explicit State(const std::filesystem::path& where) : path(where), beside(where) {
    beside += ".new";
  }
  ~State() {
    if (held) ::unlink(beside.c_str());
  }

  // Opens `beside`, or takes over what a process that was killed has left there. Waits for others
  // that write there.
  Status open_beside() {
    held.emplace();
    for (;;) {
      file = Descriptor(
          ::open(beside.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
      struct stat own {
      }, there{};
      if (!file.valid() || ::fstat(file.get(), &own) != 0) break;
      if (!S_ISREG(own.st_mode) || own.st_uid != ::geteuid() || own.st_nlink > 1) {
        errno = EEXIST;
        break;
      }
      // A file system that has no locks has nobody who waits for them.
      while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
      }
      if (::lstat(beside.c_str(), &there) != 0 || there.st_ino != own.st_ino) continue;
      if (::ftruncate(file.get(), 0) == 0) return {};
      break;
    }
    const Error error = system_fault(beside, "write");
    held.reset();  // What is there is not ours.
    return error;
  }

  // As `old`: the file that is replaced.
  void take_permissions(const struct stat& old) {
    mode_t mode = old.st_mode & 0777;
    // Another group than the old file's gets no rights from it.
    if (::fchown(file.get(), old.st_uid, old.st_gid) != 0 &&
        ::fchown(file.get(), static_cast<uid_t>(-1), old.st_gid) != 0)
      mode &= ~mode_t{S_IRWXG};
    ::fchmod(file.get(), mode);
  }

  Status open(const std::optional<int>& descriptor) {
    in_place = is_special(path);
    if (in_place) {
      file = Descriptor(descriptor ? ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0)
                                   : ::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      return file.valid() ? Status() : system_fault(path, "write");
    }
    struct stat old {};
    const bool is_there = ::stat(path.c_str(), &old) == 0;
    if (is_there && S_ISDIR(old.st_mode)) {
      errno = EISDIR;
      return system_fault(path, "replace");
    }
    if (is_there && was_read(old))
      return Error{
          Error::Code::kInvalidInput,
          path.string() + ": is a file that this command reads; give the result its own file"};
    const auto folder = path.has_parent_path() ? path.parent_path() : ".";
    file = Descriptor(::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666));
    if (!file.valid() && errno == ENOENT) return system_fault(path, "write");
    if (!file.valid() || ::access(name_of(file.get()).c_str(), F_OK) != 0)
      FORESHARD_TRY(open_beside());
    if (is_there) take_permissions(old);
    return {};
  }

  Status finish() {
    if (!in_place && ::fsync(file.get()) != 0) return system_fault(path, "write");
    if (!in_place && !held) {
      const std::string name = name_of(file.get());
      const auto link = [&](const std::filesystem::path& to) {
        return ::linkat(AT_FDCWD, name.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0;
      };
      if (link(path)) return closed();
      if (errno != EEXIST) return system_fault(path, "write");
      held.emplace();
      // What is there is complete and was left, or its process is about to rename it: then the file
      // below replaces that one.
      while (!link(beside))
        if (errno != EEXIST || (::unlink(beside.c_str()) != 0 && errno != ENOENT))
          return system_fault(beside, "write");
    }
    if (held && ::rename(beside.c_str(), path.c_str()) != 0) {
      // Another process has put it there, as above.
      const int code = errno;
      const bool is_there = code == ENOENT && ::access(path.c_str(), F_OK) == 0;
      errno = code;
      if (!is_there) return system_fault(path, "replace");
    }
    held.reset();
    return closed();
  }

  Status closed() { return file.close() ? Status() : system_fault(path, "write"); }
};

NewFile::NewFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
NewFile::NewFile(NewFile&&) noexcept = default;
NewFile::~NewFile() = default;

Result<NewFile> NewFile::begin(const std::filesystem::path& path) {
  const Target target = target_of(path);
  auto state = std::make_unique<State>(target.path);
  FORESHARD_TRY(state->open(target.descriptor));
  return NewFile(std::move(state));
}

Status NewFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(state_->file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_fault(state_->path, "write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Status NewFile::finish() {
  return state_->finish();
}

Status write_file(const std::filesystem::path& path, std::string_view bytes) {
  FORESHARD_ASSIGN(auto file, NewFile::begin(path));
  FORESHARD_TRY(file.append(bytes));
  return file.finish();
}

}  // namespace foreshard
