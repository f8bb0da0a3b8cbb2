#include "cli/replay_call.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/shell_words.h"
#include "cli/exit_code.h"

namespace foreshard::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "foreshard-replay";

bool runs(const fs::path& path) {
  return access(path.c_str(), X_OK) == 0 && !fs::is_directory(path);
}

// Path of foreshard-replay: in this program's folder, else on the PATH.
Result<std::string> replay_program() {
  std::error_code ignored;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ignored).parent_path() / kProgram;
  if (runs(beside)) return beside.string();
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    const fs::path at = fs::path(rest.substr(0, colon)) / kProgram;
    if (runs(at)) return at.string();
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return Error{Error::Code::kUnsupported,
               fmt::format("{} is neither beside this program ({}) nor on the PATH; build it, or "
                           "install it beside foreshard",
                           kProgram, beside.parent_path().string())};
}

// The call of mpirun. Each rank is bound to its own core if there are enough cores.
std::vector<std::string> mpirun(std::int64_t ranks) {
  std::vector<std::string> words{"mpirun", "-n", std::to_string(ranks)};
  const bool enough = ranks <= static_cast<std::int64_t>(std::thread::hardware_concurrency());
  words.insert(words.end(), {"--bind-to", enough ? "core" : "none", "--oversubscribe"});
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  return words;
}

// While it lives, blocks the signals for which `replay` waits.
class Blocked {
 public:
  Blocked() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set_, signal);
    sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~Blocked() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

  const sigset_t& set() const { return set_; }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

// The exit code of the child; nothing while it runs.
std::optional<int> ended(pid_t child) {
  int status = 0;
  const pid_t got = waitpid(child, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return std::nullopt;
  if (got < 0) return kInternalError;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  return std::nullopt;
}

// What the child does between fork and exec. If exec fails, it writes errno to `report` and exits.
[[noreturn]] void become(const std::vector<char*>& arguments, const sigset_t& signals, pid_t parent,
                         bool results_to_stderr, int report) {
  setsid();
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  if (results_to_stderr) dup2(STDERR_FILENO, STDOUT_FILENO);
  // If this program is killed, the launcher gets SIGTERM, so that it ends its ranks.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == parent) execvp(arguments[0], arguments.data());
  const int error = errno;
  [[maybe_unused]] const auto written = write(report, &error, sizeof error);
  _exit(kInternalError);
}

Result<pid_t> spawn(std::vector<std::string> words, const Blocked& blocked,
                    bool results_to_stderr) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const auto failed = [&](int error) {
    return Error{Error::Code::kIo,
                 fmt::format("{}: {}; give the command that starts the ranks with --launch",
                             words[0], std::strerror(error))};
  };
  std::array<int, 2> report{};
  if (pipe2(report.data(), O_CLOEXEC) != 0) return failed(errno);
  const pid_t parent = getpid();
  const pid_t child = fork();
  const int error = errno;
  if (child == 0) become(arguments, blocked.before(), parent, results_to_stderr, report[1]);
  close(report[1]);
  if (child < 0) {
    close(report[0]);
    return failed(error);
  }
  int trouble = 0;
  const auto got = read(report[0], &trouble, sizeof trouble);
  close(report[0]);
  if (got <= 0) return child;
  waitpid(child, nullptr, 0);
  return failed(trouble);
}

}  // namespace

Result<std::vector<std::string>> command_of(const ReplayCall& call) {
  FORESHARD_ASSIGN(auto program, replay_program());
  std::vector<std::string> words;
  if (!call.launch.empty()) {
    const auto cut = shell_words(call.launch);
    if (!cut) return Error{cut.error().code, "--launch: " + cut.error().message};
    words = *cut;
  } else if (call.ranks > 1) {
    words = mpirun(call.ranks);
  }
  words.push_back(std::move(program));
  words.push_back(call.program);
  if (call.host) words.emplace_back("--host");
  if (!call.output.empty()) words.insert(words.end(), {"-o", call.output});
  if (call.repeats > 0) words.insert(words.end(), {"--repeats", std::to_string(call.repeats)});
  if (!call.until.empty()) words.insert(words.end(), {"--until", call.until});
  words.insert(words.end(), call.more.begin(), call.more.end());
  return words;
}

Result<int> replay(const ReplayCall& call) {
  FORESHARD_ASSIGN(auto words, command_of(call));
  const Blocked blocked;
  FORESHARD_ASSIGN(const auto child, spawn(std::move(words), blocked, call.results_to_stderr));
  // Sets the nice value of the child's session as a whole; if that is not permitted, nothing
  // changes. Source: Linux, sched(7).
  std::ofstream(fmt::format("/proc/{}/autogroup", child)) << "-20";

  bool interrupted = false;
  for (;;) {
    if (const auto code = ended(child)) return interrupted ? kInterrupted : *code;
    siginfo_t signal{};
    if (sigwaitinfo(&blocked.set(), &signal) < 0 || signal.si_signo == SIGCHLD) continue;
    interrupted = true;
    kill(child, signal.si_signo);
  }
}

}  // namespace foreshard::cli
