/// \file
/// `Caller`: a program that calls foreshard as a library. What a command would take from its
/// process goes through it instead: stdin, stdout, stderr, Ctrl-C, and how a failed check ends.
///
///     Caller caller;
///     const CalledBy called(&caller);  // for this thread, and for those of in_threads()
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"

namespace foreshard {

/// Whether the caller wants the work to end.
enum class Ending : std::uint8_t {
  kNone,
  kWithResults,  ///< The results so far are kept if the command can; otherwise at once.
  kAtOnce,
};

/// What unwinds the stack when the work ends without a result. It is no std::exception, so that
/// nothing takes it for a fault.
struct CallEnded {};

/// The files that one command reads and writes (protect_inputs).
struct ProtectedFiles {
  using Id = std::pair<dev_t, ino_t>;
  std::mutex mutex;
  bool on = false;
  std::map<Id, std::string> outputs;  ///< File -> the option that names it.
  std::set<Id> inputs;                ///< Files that were read.
};

struct Caller {
  struct Message {
    bool is_error;
    Error::Code code;  ///< The error's code.
    std::string text;
    std::string help;
  };

  std::string input;     ///< Text in the place of stdin.
  bool may_fork = true;  ///< Whether processes may be started.
  /// Called often, from any thread.
  std::function<Ending()> stop;
  /// Called from any thread; `total` is 0 if it is unknown.
  std::function<void(std::string_view what, std::int64_t done, std::int64_t total)> progress;

  std::string output{};             ///< Text in the place of stdout.
  std::vector<Message> messages{};  ///< Lines in the place of stderr.
  std::mutex mutex{};               ///< Guards `messages`.
  ProtectedFiles files{};
  std::atomic<bool> keeps_results = false;  ///< Whether the command ends with its results so far.

  void tell(Message message);
  bool wants_an_end() const { return stop && stop() != Ending::kNone; }
};

/// While it lives, this thread has the given caller (null: none).
class CalledBy {
 public:
  explicit CalledBy(Caller* caller) : before_(std::exchange(current_caller, caller)) {}
  CalledBy(const CalledBy&) = delete;
  CalledBy& operator=(const CalledBy&) = delete;
  ~CalledBy() { current_caller = before_; }

 private:
  Caller* before_;
};

/// Long work calls this now and then. It has no effect in the program itself.
/// \throws CallEnded if the caller wants the work to end and the command keeps no results, or at
///     once.
void end_if_asked();

/// Calls end_if_asked() at every 1,024th call, for loops whose rounds take microseconds.
///
///     for (EndPoll poll; next_instant(); poll()) ...
class EndPoll {
 public:
  void operator()() {
    constexpr std::uint32_t kOften = 1024;
    if (++calls_ % kOften == 0) end_if_asked();
  }

 private:
  std::uint32_t calls_ = 0;
};

/// \return kUnsupported, with `what` in front, if the caller lets no process be started.
Status may_fork(std::string_view what);

}  // namespace foreshard
