// The progress line of searches, sweeps and other long work: drawn on a terminal from a second on,
// redrawn in place, and erased at the end.
#include "base/progress.h"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "base/caller.h"

namespace foreshard {
namespace {

using namespace std::chrono_literals;
constexpr auto kFirstDraw = 1s;  // from the start; shorter work shows no line
constexpr auto kRedraw = 100ms;  // least time between two draws

// Whether the environment variable is set and not empty.
bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

TerminalTraits stderr_traits() {
  if (current_caller != nullptr) return {.interactive = false, .escapes = false};
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  const bool interactive = ::isatty(STDERR_FILENO) == 1 && !dumb && !is_set("CI");
  // Whoever wants no colour gets no other escape sequences either.
  return {.interactive = interactive, .escapes = interactive && !is_set("NO_COLOR")};
}

std::string progress_line(const std::string& what, std::int64_t done, std::int64_t total,
                          std::chrono::duration<double> elapsed) {
  if (total <= 0) return fmt::format("{} {}", what, done);
  std::string line = fmt::format("{} {}/{} ({} %)", what, done, total, 100 * done / total);
  if (done > 0 && done < total) {
    const double seconds_left =
        elapsed.count() * static_cast<double>(total - done) / static_cast<double>(done);
    line += fmt::format(", {:.0f} s left", seconds_left);
  }
  return line;
}

Progress::Progress(std::string what, std::int64_t total)
    : Progress(std::move(what), total, stderr_traits()) {}

Progress::Progress(std::string what, std::int64_t total, TerminalTraits traits)
    : what_(std::move(what)),
      total_(total),
      traits_(traits),
      start_(Clock::now()),
      next_draw_((start_.load() + kFirstDraw).time_since_epoch().count()) {}

void Progress::tick(std::int64_t steps) {
  show(done_.fetch_add(steps, std::memory_order_relaxed) + steps, total_);
}

void Progress::at(std::int64_t done, std::int64_t total) {
  if (done < done_.exchange(done, std::memory_order_relaxed)) start_ = Clock::now();
  show(done, total);
}

void Progress::show(std::int64_t done, std::int64_t total) {
  if (current_caller != nullptr) {
    end_if_asked();
    if (current_caller->progress) current_caller->progress(what_, done, total);
  }
  if (!traits_.interactive) return;
  const auto now = Clock::now();
  auto due = next_draw_.load(std::memory_order_relaxed);
  if (now.time_since_epoch().count() < due) return;
  // One thread gets the turn to draw; the others go on with their work. The lock is for a turn that
  // lasts until the next one.
  if (!next_draw_.compare_exchange_strong(due, (now + kRedraw).time_since_epoch().count())) return;

  const std::lock_guard lock(drawing_);
  std::string line = progress_line(what_, done, total, now - start_.load());
  const std::size_t length = line.size();
  if (length < drawn_length_) line.append(drawn_length_ - length, ' ');
  drawn_length_ = length;
  std::fprintf(stderr, "\r%s", line.c_str());
  std::fflush(stderr);
}

Progress::~Progress() {
  if (drawn_length_ == 0) return;
  if (traits_.escapes)
    std::fputs("\r\x1b[K", stderr);
  else
    std::fprintf(stderr, "\r%s\r", std::string(drawn_length_, ' ').c_str());
  std::fflush(stderr);
}

}  // namespace foreshard
