#include "cli/output.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <limits>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "base/printable.h"
#include "base/progress.h"

namespace foreshard::cli {
namespace {

bool tells_its_severity(std::string_view message) {
  return message.starts_with("error:") || message.find(": error:") != std::string_view::npos;
}

}  // namespace

ExitCode fail(const Error& error) {
  return fail(error.message);
}

ExitCode fail(std::string_view message, std::string_view help) {
  if (!tells_its_severity(message)) std::cerr << "error: ";
  std::cerr << printable(message);
  if (!message.ends_with('\n')) std::cerr << '\n';
  if (!help.empty()) std::cerr << "   help: " << printable(help) << '\n';
  return kBadInput;
}

void note(std::string_view message) {
  std::cerr << printable(message) << '\n';
}

Status write_result(const std::string& path, std::string_view text) {
  if (!path.empty() && path != "-") return write_file(path, text);
  const bool to_terminal = isatty(STDOUT_FILENO) == 1;
  constexpr auto kAll = std::numeric_limits<std::size_t>::max();
  if (to_terminal)
    std::cout << printable(text, kAll, colour_on_stdout()) << std::flush;
  else
    std::cout << text << std::flush;
  if (!std::cout) return Error{Error::Code::kIo, "stdout: the result could not be written"};
  return {};
}

Status refuse_same_place(std::string_view first_option, const std::string& first,
                         std::string_view second_option, const std::string& second) {
  if (first.empty() || second.empty()) return {};
  std::error_code first_fault;
  std::error_code second_fault;
  // Paths are made absolute first, because a file that does not exist yet has no canonical path.
  const auto one = std::filesystem::weakly_canonical(std::filesystem::absolute(first), first_fault);
  const auto other =
      std::filesystem::weakly_canonical(std::filesystem::absolute(second), second_fault);
  const bool known = !first_fault && !second_fault;
  if (known ? one != other : first != second) return {};
  return Error{Error::Code::kInvalidInput,
               fmt::format("{} and {} both name '{}': give each its own file", first_option,
                           second_option, first)};
}

Status refuse_trace(const std::string& trace, const std::string& output) {
  if (trace == "-")
    return Error{Error::Code::kInvalidInput, "--trace: a time line goes to a file, not to stdout"};
  return refuse_same_place("--output", output, "--trace", trace);
}

bool colour_on_stdout() {
  const char* terminal = std::getenv("TERM");
  const char* refused = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0') &&
         terminal != nullptr && std::string_view(terminal) != "dumb";
}

Busy::Busy(std::string what) : what_(std::move(what)) {
  if (!stderr_traits().interactive) return;
  try {
    thread_ = std::thread([this] { show(); });
  } catch (const std::system_error&) {  // no thread for it: the line is not needed
  }
}

Busy::~Busy() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Busy::show() {
  using std::chrono::seconds;
  std::unique_lock lock(mutex_);
  std::size_t drawn = 0;
  for (int elapsed = 1; !wake_.wait_for(lock, seconds(1), [this] { return done_; }); ++elapsed) {
    const std::string line = fmt::format("{}, {} s", printable(what_), elapsed);
    drawn = line.size();
    std::cerr << '\r' << line << std::flush;
  }
  if (drawn > 0) std::cerr << '\r' << std::string(drawn, ' ') << '\r' << std::flush;
}

}  // namespace foreshard::cli
