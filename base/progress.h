/// \file
/// A progress line on stderr for work that people wait for.
///
///     Progress progress("simulating", points.size());
///     for (...) { ...; progress.tick(); }   // from any thread
///
/// It appears only on a terminal, after a second, and is erased at the end. It stays silent where
/// stderr is not a terminal, `TERM` is `dumb` or unset, or `CI` is set; `NO_COLOR` leaves out
/// escape sequences. A Caller is told instead.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace foreshard {

/// What a terminal on stderr may be sent.
struct TerminalTraits {
  bool interactive;  ///< A person watches, and the line can be rewritten.
  bool escapes;      ///< Escape sequences (colour, erase) are welcome.
};
TerminalTraits stderr_traits();

class Progress {
 public:
  /// `total` is the number of ticks of the whole work; 0: unknown.
  Progress(std::string what, std::int64_t total);
  Progress(std::string what, std::int64_t total, TerminalTraits traits);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// Counts `steps` more of `total` as done.
  /// \throws CallEnded (end_if_asked)
  void tick(std::int64_t steps = 1);
  /// Sets the counts, for work in rounds whose totals show as they begin. Time left is of the round
  /// at hand.
  /// \throws CallEnded (end_if_asked)
  void at(std::int64_t done, std::int64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  void show(std::int64_t done, std::int64_t total);

  const std::string what_;
  const std::int64_t total_;
  const TerminalTraits traits_;
  std::atomic<Clock::time_point> start_;  ///< Beginning of the round.
  std::atomic<std::int64_t> done_{0};
  std::atomic<Clock::rep> next_draw_;  ///< Earliest time of the next draw, since the clock's epoch.
  std::mutex drawing_;
  std::size_t drawn_length_ = 0;  ///< Characters of the line on the terminal.
};

/// The line's text: "simulating 12/96 (12 %), 3 s left". The estimate assumes equal ticks.
std::string progress_line(const std::string& what, std::int64_t done, std::int64_t total,
                          std::chrono::duration<double> elapsed);

}  // namespace foreshard
