/// \file
/// The position of a rank in its plan, for the watchdog. An executor reports it, from any of its
/// threads; the watchdog (watchdog.h) reads it from its own thread and asks the executor to stop.
///
///     watch.issuing(i);  // before the launch of each instance
///     watch.at(i);       // whenever another instance is the earliest unfinished one
///     watch.beat();      // whenever something finished; in prepare, every few seconds
///     watch.alone("loads NCCL");  // in prepare: slow work that waits for no other rank
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace foreshard::replay {

class Watch {
 public:
  /// The rank works on `instance` or waits in it: the earliest unfinished one of all its streams.
  void at(std::int64_t instance) {
    instance_.store(instance, std::memory_order_relaxed);
    beats_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Something finished: the rank is alive.
  void beat() { beats_.fetch_add(1, std::memory_order_relaxed); }
  /// From here on the rank does `what` (a string literal), for which it needs no other rank: a call
  /// that loads or allocates may take long without a beat. nullptr: it may wait for others again.
  void alone(const char* what) {
    alone_.store(what, std::memory_order_relaxed);
    beat();
  }
  /// `instance` is issued next. If the rank is told to hang there (--hang), it returns only when it
  /// is asked to stop.
  void issuing(std::int64_t instance) {
    if (instance != hang_.load(std::memory_order_relaxed)) return;
    at(instance);
    while (!stopped()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  std::int64_t instance() const { return instance_.load(std::memory_order_relaxed); }
  const char* alone() const { return alone_.load(std::memory_order_relaxed); }
  std::uint64_t beats() const { return beats_.load(std::memory_order_relaxed); }

  /// Asks the executor to stop: it polls this and gives up with an error.
  void stop() { stopped_.store(true, std::memory_order_release); }
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }

  /// For tests of the watchdog: this rank stops before `instance`.
  void hang_before(std::int64_t instance) { hang_.store(instance, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> instance_{-1};  // -1: not in a step
  std::atomic<const char*> alone_{nullptr};
  std::atomic<std::uint64_t> beats_{0};
  std::atomic<std::int64_t> hang_{-1};
  std::atomic<bool> stopped_{false};
};

}  // namespace foreshard::replay
