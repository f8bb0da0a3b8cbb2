#include "validate/replay/run.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/net/faults.h"
#include "base/net/identity.h"
#include "base/result.h"
#include "base/threads.h"

#include "strategies/program/ir/json.h"
#include "strategies/program/ir/verify.h"
#include "validate/measurement/measurement.h"
#include "validate/replay/arguments.h"
#include "validate/replay/plan.h"
#include "validate/replay/session.h"
#include "validate/replay/store.h"
#include "validate/replay/tcp_store.h"
#include "validate/replay/watchdog.h"

namespace foreshard::replay {
namespace {

// Ends a process that is one rank of a job. Whatever goes wrong, and whichever thread notices it,
// the fault is printed once, the other ranks are told, a file being written is finished, and the
// process ends.

class Process {
 public:
  /// From here on, SIGINT, SIGTERM and SIGHUP end the process through `end`. It must be made before
  /// any other thread begins, because other threads must not receive these signals.
  explicit Process(const Identity& identity);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Sets the store through which the other ranks are told.
  /// \param store  must outlive this object, or be reset with nullptr.
  void meets_in(Store* store);

  /// Prints "error: rank 2: ..." to stderr, gives up in the store, waits a moment for the last
  /// words of the other ranks, and ends the process. Only the first call has an effect; later calls
  /// wait for the end.
  [[noreturn]] void end(const std::string& message, int code);
  /// Ends with the message and the exit code of an Error.
  [[noreturn]] void end(const Error& error);

  /// Runs `write`; `end` waits for it.
  Status write(const std::function<Status()>& write);

 private:
  void wait_for_signals();
  [[noreturn]] void interrupted(int signal);

  std::atomic<bool> ending_{false};
  std::timed_mutex writing_;
  std::mutex mutex_;
  std::int32_t rank_;
  std::int32_t ranks_;
  Store* store_ = nullptr;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

constexpr Seconds kLastWords = 1_s;
constexpr auto kPatienceWithWriting = std::chrono::seconds(10);
// A launcher that lost a rank ends the other ranks by a signal; the store tells which one was lost.
constexpr auto kPatienceWithNews = std::chrono::milliseconds(300);

sigset_t ending_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
  return set;
}

std::string name_of(int signal) {
  if (signal == SIGINT) return "SIGINT";
  return signal == SIGTERM ? "SIGTERM" : "SIGHUP";
}

// Whose messages these are: "rank 2: " in a job of several ranks, once the rank is known.
std::string message_prefix;

// Ends without a word to the other ranks, who see the connection end.
[[noreturn]] void end_without_resources() {
  end_unanswered(message_prefix);
}

Process::Process(const Identity& identity) : rank_(identity.rank), ranks_(identity.ranks) {
  if (ranks_ > 1) message_prefix = "rank " + std::to_string(rank_) + ": ";
  const sigset_t set = ending_signals();
  FORESHARD_CHECK(::pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  thread_ = std::thread([this] { wait_for_signals(); });
}

Process::~Process() {
  over_ = true;
  thread_.join();
}

void Process::meets_in(Store* store) {
  const std::lock_guard lock(mutex_);
  store_ = store;
}

void Process::wait_for_signals() {
  const sigset_t set = ending_signals();
  const timespec tick{.tv_sec = 0, .tv_nsec = 100'000'000};
  while (!over_) {
    const int signal = ::sigtimedwait(&set, nullptr, &tick);
    if (signal > 0) interrupted(signal);
  }
}

void Process::interrupted(int signal) {
  Store* store = nullptr;
  {
    const std::lock_guard lock(mutex_);
    store = store_;
  }
  const auto begin = std::chrono::steady_clock::now();
  while (signal != SIGINT && store != nullptr &&
         std::chrono::steady_clock::now() - begin < kPatienceWithNews) {
    if (const auto ended = store->ended()) end(*ended, kRankLost);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  end("interrupted by " + name_of(signal), kInterrupted);
}

void Process::end(const std::string& message, int code) {
  if (ending_.exchange(true))
    for (;;) ::pause();
  Store* store = nullptr;
  {
    const std::lock_guard lock(mutex_);
    store = store_;
  }
  // Written in one piece, because the ranks share the launcher's stderr.
  std::cerr << "error: " + message_prefix + message + "\n" << std::flush;
  if (store != nullptr && ranks_ > 1) {
    if (code != kRankLost) store->give_up(message);
    last_words(*store, rank_, ranks_, kLastWords);
  }
  static_cast<void>(writing_.try_lock_for(kPatienceWithWriting));
  std::cout << std::flush;
  ::_exit(code);
}

void Process::end(const Error& error) {
  end(error.message, code_of(error));
}

Status Process::write(const std::function<Status()>& write) {
  const std::lock_guard lock(writing_);
  return write();
}

using net::bad;
using net::environment;
using net::identity_from;

using program::Program;

constexpr Seconds kPatienceToTell = 5_s;

// Reads and checks the Program, before anything is started.
Result<Program> load(const Arguments& arguments, const Identity& identity) {
  protect_inputs({{"-o", arguments.output}});
  FORESHARD_ASSIGN(const auto text, read_file(arguments.program, limits::kProgram));
  auto program = program::program_from_json(text);
  if (!program)
    return Error{program.error().code, arguments.program + ": " + program.error().message};
  if (const Status violation = program::verify(*program); !violation.ok())
    return Error{violation.error().code, arguments.program + ": " + violation.error().message};
  const std::int64_t ranks = program->ranks();
  if (!arguments.as_rank && !(arguments.check && identity.ranks == 1) && identity.ranks != ranks)
    return bad(arguments.program + ": the Program has " + std::to_string(ranks) + " rank" +
               (ranks == 1 ? "" : "s") + ", but " + std::to_string(identity.ranks) + " w" +
               (identity.ranks == 1 ? "as" : "ere") + " started" +
               (identity.source.empty()
                    ? " (no launcher's variables are set: mpirun, srun or torchrun start the ranks)"
                    : " (" + identity.source + ")"));
  if (arguments.as_rank && *arguments.as_rank >= ranks)
    return bad("--as-rank is " + std::to_string(*arguments.as_rank) + ", but the Program has " +
               std::to_string(ranks) + " ranks");
  if (arguments.as_rank && identity.ranks != 1)
    return bad("--as-rank replays one rank in one process, but " + std::to_string(identity.ranks) +
               " were started");
  if (arguments.hang && arguments.hang->rank >= ranks)
    return bad("--hang names rank " + std::to_string(arguments.hang->rank) +
               ", but the Program has " + std::to_string(ranks) + " ranks");
  return program;
}

// One per instance: when the result of the communication arrives.
Result<std::vector<Seconds>> load_arrivals(const std::string& path, const RankPlan& plan) {
  FORESHARD_ASSIGN(const auto text, read_file(path, limits::kTable));
  const auto arrivals = measure::arrivals_from_json(text);
  if (!arrivals) return Error{arrivals.error().code, path + ": " + arrivals.error().message};
  if (arrivals->fingerprint != measure::fingerprint_of(*plan.program))
    return bad(path + ": is of another Program ('" + arrivals->program + "', " +
               arrivals->fingerprint + "): export both from one study");
  if (arrivals->rank != plan.rank)
    return bad(path + ": is of rank " + std::to_string(arrivals->rank) + ", not of rank " +
               std::to_string(plan.rank));
  if (arrivals->seconds.size() != plan.expansion.instances.size())
    return bad(path + ": has " + std::to_string(arrivals->seconds.size()) +
               " instances, but rank " + std::to_string(plan.rank) + " has " +
               std::to_string(plan.expansion.instances.size()));
  std::vector<Seconds> out;
  for (std::size_t i = 0; i < arrivals->seconds.size(); ++i) {
    if (plan.operations[i].communicator >= 0 && !arrivals->seconds[i])
      return bad(path + ": seconds[" + std::to_string(i) + "] is null, but instance " +
                 std::to_string(i) + " is " + describe(plan, i));
    out.push_back(arrivals->seconds[i].value_or(Seconds()));
  }
  return out;
}

// Checks, before hours are spent on measuring, that the output file can be written.
Status fault_of_output(const std::string& path) {
  if (path.empty()) return {};
  std::filesystem::path folder = behind_links(path).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Error{Error::Code::kIo, path + ": is a directory, not a file"};
  if (!std::filesystem::is_directory(folder, ignored))
    return Error{Error::Code::kIo, path + ": there is no folder '" + folder.string() + "'"};
  if (!is_special(path) && ::access(folder.c_str(), W_OK) != 0)
    return Error{Error::Code::kIo,
                 path + ": the folder '" + folder.string() + "' cannot be written"};
  return {};
}

// Checks that all ranks carry out the same Program as rank 0.
Status compare_programs(Store& store, const std::string& path, const std::string& fingerprint,
                        const Identity& identity, Seconds patience) {
  if (identity.ranks == 1) return {};
  FORESHARD_TRY(barrier(store, "begin", identity.rank, identity.ranks, patience));
  if (identity.rank == 0) return store.set("program", fingerprint);
  FORESHARD_ASSIGN(const auto first, store.get("program", patience));
  if (first == fingerprint) return {};
  return bad(path + ": is another Program (" + fingerprint + ") than rank 0 has (" + first + ")");
}

std::string job_of(const Arguments& arguments) {
  return "foreshard-replay " FORESHARD_VERSION +
         std::string(arguments.host ? " --host" : " --gpu") +
         (arguments.verify ? " --verify" : "") + (arguments.output.empty() ? "" : " -o") +
         " --warmup " + std::to_string(arguments.warmup) + " --repeats " +
         std::to_string(arguments.repeats) + " --most-repeats " +
         std::to_string(arguments.most_repeats) +
         (arguments.until ? " --until " + std::to_string(*arguments.until) : "") +
         (arguments.lasting ? " --for " + std::to_string(*arguments.lasting / 1_s) : "");
}

class Replay {
 public:
  Replay(Arguments arguments, Identity identity, Process& process, const Executors& executors)
      : arguments_(std::move(arguments)),
        identity_(std::move(identity)),
        process_(process),
        executors_(executors) {}

  ~Replay() { process_.meets_in(nullptr); }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  int run() {
    prepare();
    if (arguments_.check) return report_check();
    if (const Status fault = meet(); !fault.ok()) return failed(fault.error());
    if (const Status fault =
            compare_programs(*store_, arguments_.program, measure::fingerprint_of(program_),
                             identity_, arguments_.watchdog);
        !fault.ok())
      return failed(fault.error());
    Watch watch;
    if (arguments_.hang && arguments_.hang->rank == plan_->rank)
      watch.hang_before(arguments_.hang->instance);
    WatchdogOptions options{
        .rank = identity_.rank, .ranks = identity_.ranks, .patience = arguments_.watchdog};
    if (identity_.rank == 0)
      options.tell = [](const std::string& note) {
        std::cerr << "note: rank 0 " + note + "\n" << std::flush;
      };
    Watchdog watchdog(options, *plan_, *store_, watch,
                      [this](const std::string& message) { process_.end(message, kRankLost); });
    watchdog.enter_preparation("starting");
    if (!arguments_.host) watch.alone("makes a context on its GPU");
    auto made = (arguments_.host ? executors_.host : executors_.gpu)(executor_options_, *store_);
    watchdog.leave();
    if (!made) return failed(made.error());
    std::unique_ptr<Executor> executor = *std::move(made);
    const auto result = run_session(*plan_, *executor, *store_, watch, watchdog, session_options());
    if (!result) return failed(result.error());
    watchdog.enter("closing");
    executor.reset();
    watchdog.leave();
    if (result->measurement)
      if (const Status fault = write(*result->measurement); !fault.ok())
        return failed(fault.error());
    std::cout << summary(*result) << std::flush;
    return result->verified ? kDone : kGateFailed;
  }

 private:
  // Checks the input. A fault is kept until there is a store through which to tell the other ranks.
  void prepare() {
    auto program = load(arguments_, identity_);
    if (!program) {
      early_ = program.error();
      return;
    }
    program_ = *std::move(program);
    auto plan = plan_rank(program_, arguments_.as_rank.value_or(identity_.rank));
    if (!plan) {
      early_ = Error{plan.error().code, arguments_.program + ": " + plan.error().message};
      return;
    }
    plan_ = *std::move(plan);
    executor_options_.local_rank = identity_.local_rank;
    executor_options_.shared = arguments_.shared;
    const auto instances = static_cast<std::int64_t>(plan_->expansion.instances.size());
    if (arguments_.hang && arguments_.hang->rank == plan_->rank &&
        arguments_.hang->instance >= instances)
      early_ =
          bad("--hang names instance " + std::to_string(arguments_.hang->instance) + ", but rank " +
              std::to_string(plan_->rank) + " has " + std::to_string(instances));
    if (early_.ok() && arguments_.as_rank) {
      auto arrivals = load_arrivals(arguments_.arrivals, *plan_);
      if (!arrivals) {
        early_ = arrivals.error();
        return;
      }
      executor_options_.mode = measure::Mode::kOneRank;
      executor_options_.arrivals = *std::move(arrivals);
    }
    if (early_.ok() && identity_.rank == 0) early_ = fault_of_output(arguments_.output);
  }

  int report_check() {
    if (!early_.ok()) return failed(early_.error());
    std::cout << "rank " << plan_->rank << " of " << program_.ranks() << ": "
              << plan_->expansion.instances.size() << " tasks, " << plan_->communicators.size()
              << " communicators\n";
    return kDone;
  }

  // Opens the store. A fault of the Program takes precedence over a missing store.
  Status meet() {
    auto store = open_store(environment(), identity_,
                            {.folder = arguments_.rendezvous,
                             .job = {job_of(arguments_), identity_.token},
                             .patience = early_.ok() ? arguments_.watchdog : kPatienceToTell});
    if (!store) return early_.ok() ? store.error() : early_;
    store_ = *std::move(store);
    process_.meets_in(store_.get());
    return early_;
  }

  SessionOptions session_options() const {
    return {.rank = identity_.rank,
            .ranks = identity_.ranks,
            .verify = arguments_.verify,
            .measure = !arguments_.output.empty(),
            .warmup = arguments_.warmup,
            .repeats = arguments_.repeats,
            .until = arguments_.until,
            .most_repeats = arguments_.most_repeats,
            .lasting = arguments_.lasting,
            .patience = arguments_.watchdog,
            .mode = executor_options_.mode,
            .shared = arguments_.shared,
            .backend = arguments_.host ? "host" : "cuda",
            .version = FORESHARD_VERSION,
            .date = date_of_now()};
  }

  Status write(const measure::Measurement& measurement) {
    return process_.write(
        [&] { return write_file(arguments_.output, measure::to_json(measurement)); });
  }

  // Ends with `error`. If another rank has ended, that is named instead: it is the cause of an
  // error that the operating system or a library reports here.
  [[noreturn]] int failed(const Error& error) {
    const bool own = !early_.ok() || error.code != Error::Code::kIo;
    const auto ended = store_ && !own ? store_->ended() : std::nullopt;
    if (ended) process_.end(*ended, kRankLost);
    process_.end(error);
  }

  Arguments arguments_;
  Identity identity_;
  Process& process_;
  const Executors& executors_;
  Status early_;
  Program program_;
  std::optional<RankPlan> plan_;
  ExecutorOptions executor_options_;
  std::unique_ptr<Store> store_;
};

}  // namespace

int run(int argc, const char* const* argv, const Executors& executors) {
  std::set_terminate(end_without_resources);
  const auto arguments = arguments_from({argv + 1, argv + argc});
  if (!arguments) {
    std::cerr << "error: " + arguments.error().message + "\n";
    return kBadInput;
  }
  if (arguments->help || arguments->version) {
    std::cout << (arguments->help ? help_text() : "foreshard-replay " FORESHARD_VERSION "\n");
    return kDone;
  }
  const auto identity = identity_from(environment());
  if (!identity) {
    std::cerr << "error: " + identity.error().message + "\n";
    return kBadInput;
  }
  Process process(*identity);
  return Replay(*arguments, *identity, process, executors).run();
}

}  // namespace foreshard::replay
