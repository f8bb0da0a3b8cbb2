// A library for LD_PRELOAD that lets an allocation of the program fail: of those that operator new
// makes from main on, the one with a given number, or with "12+" all from there on.
//
// The process serves its own copies: at the first of these allocations it reads lines from stdin,
// each a number (0: none fails) and a folder. For each it makes a copy of itself (fork), which goes
// on in that folder as if nothing had been, with its outputs in `stdout` and `stderr` there, and
// leaves the number of its allocations in `count`. When the copy has ended, the server writes its
// exit code (128 and more: the signal) as a line to stdout. So no copy costs the time in which the
// libraries of the program are loaded.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <new>
#include <sys/wait.h>
#include <unistd.h>

namespace {

std::atomic<long> count{0};
long failing = 0;
bool all_from_there = false;

constexpr unsigned kPatience = 100;  // seconds after which a copy is ended by SIGALRM

// The handler when this library was loaded; null before. main begins by setting one of its own.
const std::terminate_handler at_start = std::get_terminate();
bool main_has_begun() {
  return at_start != nullptr && std::get_terminate() != at_start;
}

void point(int descriptor, const char* path, int flags) {
  const int file = ::open(path, flags, 0644);
  if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(127);
  ::close(file);
}

void go_on_in(const char* folder) {
  if (::chdir(folder) != 0) ::_exit(127);
  point(0, "/dev/null", O_RDONLY);
  point(1, "stdout", O_WRONLY | O_CREAT | O_TRUNC);
  point(2, "stderr", O_WRONLY | O_CREAT | O_TRUNC);
  ::alarm(kPatience);
}

void write_count() {
  std::FILE* file = std::fopen("count", "w");
  if (file == nullptr) return;
  std::fprintf(file, "%ld\n", count.load());
  std::fclose(file);
}

// Returns in each copy; the server itself ends where stdin ends.
void serve() {
  std::array<char, 4096> line{};
  std::array<char, 4096> folder{};
  for (char plus = 0; std::fgets(line.data(), line.size(), stdin) != nullptr; plus = 0) {
    if (std::sscanf(line.data(), "%ld%c %4095s", &failing, &plus, folder.data()) != 3) break;
    all_from_there = plus == '+';
    const pid_t copy = ::fork();
    if (copy == 0) {
      go_on_in(folder.data());
      std::atexit(write_count);
      return;
    }
    int status = 0;
    if (copy < 0 || ::waitpid(copy, &status, 0) != copy) break;
    std::printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    std::fflush(stdout);
  }
  ::_exit(0);
}

bool fails() {
  if (!main_has_begun()) return false;
  static const bool is_copy = (serve(), true);
  const long now = ++count;
  return is_copy && failing > 0 && (now == failing || (all_from_there && now > failing));
}

}  // namespace

void* operator new(std::size_t size) {
  void* memory = fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
