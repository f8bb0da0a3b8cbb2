#include "cli/replay.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/caller.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/scratch_folder.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/simulate/simulate.h"
#include "sim/study/run.h"
#include "strategies/program/ir/json.h"
#include "strategies/program/ir/verify.h"
#include "validate/compare/timeline.h"

// The command `foreshard replay`: lowers a study to its Program (or takes a Program's JSON) and
// runs foreshard-replay on it, which measures the Program on real devices or verifies its
// communication. Options of a measurement are passed on as text; foreshard-replay checks them.

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
  FORESHARD_TRY(may_fork("foreshard-replay"));
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

namespace {

class Replay final : public Command {
 public:
  void declare(Declaration& declaration) override {
    study_.declare(declaration);
    declaration.flag("--host", host_, "Replay on processors, with BLAS and MPI, instead of GPUs.");
    declaration.option(
        "--launch", "COMMAND", launcher_,
        "Command that starts the ranks, such as \"srun -n 16\". Without it they run on this host.");
    declaration.count("-n,--processes", processes_, 0,
                      "Ranks to start; must be as many as the Program has (0: as many); omit it "
                      "with --as-rank.");
    declaration.output("-o,--output", "FILE", output_,
                       "Write the measurement (JSON) to this file.");
    declaration.output("--program", "FILE", program_file_,
                       "Keep the study's Program in this file, which all hosts must see.");
    declaration.flag("--verify", verify_, "Check the numbers that each communication delivers.");
    declaration.option("--warmup", "N", warmup_, "Number of steps before measurement begins (2).");
    declaration.option("--repeats", "N", repeats_, "Least number of measured steps (10).");
    declaration.option(
        "--until", "P%", until_,
        "Measure more steps until the medians of step and large kernels are known to +-P %.");
    declaration.option("--most-repeats", "N", most_repeats_,
                       "Largest number of measured steps with --until (200).");
    declaration.option("--for", "TIME", for_,
                       "Go on measuring for this time, such as 90s, however many steps these are.");
    declaration.option("--watchdog", "SECONDS", watchdog_,
                       "End a job in which nothing finishes for this time (60).");
    declaration.option("--as-rank", "R", as_rank_,
                       "Replay rank R alone; what it receives arrives when the simulation says.");
    declaration.flag("--shared", shared_,
                     "Let several ranks share one GPU, to check correctness, not speed.");
  }

  Result<ExitCode> run(const Environment& environment) override {
    if (output_.empty() && !verify_)
      return fail("nothing to do", "give -o FILE to measure, --verify to check numbers");
    const ScratchFolder scratch;
    if (scratch.path().empty())
      return fail("no folder for temporary files can be made",
                  "set TMPDIR to one that is writable");
    ReplayCall call{.output = output_, .host = host_, .launch = launcher_};
    const std::string& given = study_.study();
    const bool is_program = given.ends_with(".json");
    const auto error =
        is_program ? use_program(given, call) : use_study(environment, scratch, call);
    FORESHARD_TRY(error);
    if (processes_ != 0 && processes_ != call.ranks)
      return fail(fmt::format("-n is {}, but the Program has {} {}", processes_, call.ranks,
                              plural(call.ranks, "rank")));
    add_options(call);
    FORESHARD_ASSIGN(const auto code, replay(call));
    return static_cast<ExitCode>(code);
  }

 private:
  // Replays the Program in the file `path`.
  Status use_program(const std::string& path, ReplayCall& call) {
    if (!as_rank_.empty())
      return Error{Error::Code::kInvalidInput,
                   "--as-rank needs a study, whose simulation gives the times of arrival; with a "
                   "Program use foreshard-replay --as-rank R --arrivals FILE"};
    const std::string study_option =
        program_file_.empty() ? study_.first_study_option() : "--program";
    if (!study_option.empty())
      return Error{Error::Code::kInvalidInput,
                   fmt::format("{} applies only to a study, and {} is a Program: omit it",
                               study_option, path)};
    FORESHARD_ASSIGN(const auto text, read_file(path, limits::kProgram));
    const auto program = program::program_from_json(text);
    if (!program) return Error{program.error().code, path + ": " + program.error().message};
    if (const Status fault = program::verify(*program); !fault.ok())
      return Error{fault.error().code, path + ": " + fault.error().message};
    call.program = path;
    call.ranks = program->ranks();
    return {};
  }

  // Replays the study's Program. With --as-rank the study is simulated too: when that rank's
  // messages arrive is written to a file for foreshard-replay, and one process is started.
  Status use_study(const Environment& environment, const ScratchFolder& scratch, ReplayCall& call) {
    if (!as_rank_.empty() && processes_ > 1)
      return Error{
          Error::Code::kInvalidInput,
          fmt::format("-n is {}, but --as-rank replays one rank alone: omit -n", processes_)};
    const Busy busy("lowering");
    FORESHARD_ASSIGN(const auto study, study_.load(environment));
    FORESHARD_ASSIGN(const auto cluster, study::cluster_of(study));
    FORESHARD_ASSIGN(const auto program, study::program_of(study, cluster));
    call.program = path_of_program(scratch);
    call.ranks = program.ranks();
    FORESHARD_TRY(write_file(call.program, program::to_json(program)));
    if (as_rank_.empty()) return {};

    std::int64_t rank = -1;
    const char* const end = as_rank_.data() + as_rank_.size();
    const auto read = std::from_chars(as_rank_.data(), end, rank);
    if (read.ec != std::errc() || read.ptr != end || rank < 0 || rank >= call.ranks)
      return Error{
          Error::Code::kInvalidInput,
          fmt::format("--as-rank is '{}', not a rank from 0 to {}", as_rank_, call.ranks - 1)};
    FORESHARD_ASSIGN(
        const auto prediction,
        study::simulated(study, cluster, program, {.timeline = true, .critical_path = false}));
    FORESHARD_ASSIGN(const auto arrivals, compare::arrivals_of(program, prediction, rank));
    arrivals_ = call.program + ".arrivals";
    call.ranks = 1;
    return write_file(arrivals_, measure::to_json(arrivals));
  }

  // Path of the Program. With a launcher it is not a temporary file, which other hosts may not see.
  std::string path_of_program(const ScratchFolder& scratch) const {
    if (!program_file_.empty()) return program_file_;
    if (launcher_.empty()) return scratch.path() / "program.json";
    return (output_.empty() ? "replay" : output_) + ".program.json";
  }

  // Passes on the options that were given.
  void add_options(ReplayCall& call) const {
    const auto add = [&](const char* name, const std::string& value) {
      if (value.empty()) return;
      call.more.emplace_back(name);
      call.more.push_back(value);
    };
    add("--warmup", warmup_);
    add("--repeats", repeats_);
    add("--until", until_);
    add("--most-repeats", most_repeats_);
    add("--for", for_);
    add("--watchdog", watchdog_);
    add("--as-rank", as_rank_);
    add("--arrivals", arrivals_);
    if (verify_) call.more.emplace_back("--verify");
    if (shared_) call.more.emplace_back("--shared");
  }

  StudyOptions study_;
  bool host_ = false, verify_ = false, shared_ = false;
  std::int64_t processes_ = 0;  // ranks to start; 0: as many as needed
  // As given on the command line; empty: not given. `arrivals_` is the path of a file made here.
  std::string launcher_, output_, program_file_, warmup_, repeats_, until_, most_repeats_, for_,
      watchdog_, as_rank_, arrivals_;
};

}  // namespace

std::unique_ptr<Command> make_replay() {
  return std::make_unique<Replay>();
}

}  // namespace foreshard::cli
