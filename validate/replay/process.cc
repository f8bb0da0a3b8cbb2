#include "validate/replay/process.h"

#include <chrono>
#include <csignal>
#include <ctime>
#include <iostream>
#include <pthread.h>
#include <unistd.h>

#include "base/check.h"

#include "validate/replay/exit_code.h"
#include "validate/replay/watchdog.h"

namespace foreshard::replay {
namespace {

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

}  // namespace

Process::Process() {
  const sigset_t set = ending_signals();
  FORESHARD_CHECK(::pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  thread_ = std::thread([this] { wait_for_signals(); });
}

Process::~Process() {
  over_ = true;
  thread_.join();
}

void Process::is_rank(std::int32_t rank, std::int32_t ranks) {
  const std::lock_guard lock(mutex_);
  rank_ = rank;
  ranks_ = ranks;
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
  std::int32_t rank = 0, ranks = 1;
  Store* store = nullptr;
  {
    const std::lock_guard lock(mutex_);
    rank = rank_;
    ranks = ranks_;
    store = store_;
  }
  // Written in one piece, because the ranks share the launcher's stderr.
  const std::string who = ranks > 1 ? "rank " + std::to_string(rank) + ": " : "";
  std::cerr << "error: " + who + message + "\n" << std::flush;
  if (store != nullptr && ranks > 1) {
    if (code != kRankLost) store->give_up(message);
    last_words(*store, rank, ranks, kLastWords);
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

}  // namespace foreshard::replay
