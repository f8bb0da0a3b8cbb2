#include "base/progress.h"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace foreshard {
namespace {

using namespace std::chrono_literals;
constexpr auto kQuiet = 1s;  // Work that ends sooner shows nothing.
constexpr auto kRedraw = 100ms;

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

TerminalTraits stderr_traits() {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  const bool interactive = ::isatty(STDERR_FILENO) == 1 && !dumb && !is_set("CI");
  return {.interactive = interactive, .escapes = interactive && !is_set("NO_COLOR")};
}

std::string progress_line(const std::string& what, std::int64_t done, std::int64_t total,
                          std::chrono::duration<double> elapsed) {
  if (total <= 0) return fmt::format("{} {}", what, done);
  std::string line = fmt::format("{} {}/{} ({} %)", what, done, total, 100 * done / total);
  if (done > 0 && done < total) {
    const double left =
        elapsed.count() * static_cast<double>(total - done) / static_cast<double>(done);
    line += fmt::format(", {:.0f} s left", left);
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
      next_((start_ + kQuiet).time_since_epoch().count()) {}

void Progress::tick(std::int64_t done) {
  const std::int64_t now_done = done_.fetch_add(done, std::memory_order_relaxed) + done;
  if (!traits_.interactive) return;
  const auto now = Clock::now();
  auto due = next_.load(std::memory_order_relaxed);
  if (now.time_since_epoch().count() < due) return;
  // One thread wins the right to draw; the others go on with their work.
  if (!next_.compare_exchange_strong(due, (now + kRedraw).time_since_epoch().count())) return;

  const std::lock_guard lock(drawing_);
  std::string line = progress_line(what_, now_done, total_, now - start_);
  const std::size_t length = line.size();
  if (length < drawn_) line.append(drawn_ - length, ' ');
  drawn_ = length;
  std::fprintf(stderr, "\r%s", line.c_str());
  std::fflush(stderr);
}

Progress::~Progress() {
  if (drawn_ == 0) return;
  if (traits_.escapes)
    std::fputs("\r\x1b[K", stderr);
  else
    std::fprintf(stderr, "\r%s\r", std::string(drawn_, ' ').c_str());
  std::fflush(stderr);
}

}  // namespace foreshard
