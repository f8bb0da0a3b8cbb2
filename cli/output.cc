#include "cli/output.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/caller.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/progress.h"
#include "base/text.h"

#include "sim/report/trace.h"

namespace foreshard::cli {
namespace {

constexpr std::size_t kNarrowest = 80;
constexpr std::size_t kWidest = 140;

bool tells_its_severity(std::string_view message) {
  return message.starts_with("error:") || message.starts_with("internal error:") ||
         message.find(": error:") != std::string_view::npos;
}

// A variable of the environment; empty if it is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Whether results go to a terminal.
bool on_terminal(const std::string& path) {
  return current_caller == nullptr && (path.empty() || path == "-") && isatty(STDOUT_FILENO) == 1;
}

bool has_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const std::string locale = lower_case(variable(name)); !locale.empty())
      return contains(locale, "utf-8") || contains(locale, "utf8");
  return true;  // nobody says: containers leave it so
}

// What set_colours() was given.
thread_local std::string colours = "auto";

bool has_colours(bool is_terminal) {
  if (colours != "auto") return colours == "always";
  const std::string terminal = variable("TERM");
  return is_terminal && variable("NO_COLOR").empty() && !terminal.empty() && terminal != "dumb";
}

// Where the description in a line of help begins: behind the first gap of two spaces or more.
std::size_t description_in(const std::string& line) {
  const std::size_t word = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", word);
  return gap == line.npos ? word : std::min(line.find_first_not_of(' ', gap), line.size());
}

// Tells the caller, or prints to stderr.
void tell(Caller::Message message) {
  if (current_caller != nullptr) {
    current_caller->tell(std::move(message));
    return;
  }
  if (message.is_error && !tells_its_severity(message.text)) std::cerr << "error: ";
  std::cerr << printable(message.text);
  if (!message.text.ends_with('\n')) std::cerr << '\n';
  if (!message.help.empty()) std::cerr << "   help: " << printable(message.help) << '\n';
}

}  // namespace

ExitCode fail(const Error& error) {
  tell({.is_error = true, .code = error.code, .text = error.message, .help = {}});
  return kBadInput;
}

ExitCode fail(std::string_view message, std::string_view help) {
  tell({.is_error = true,
        .code = Error::Code::kInvalidInput,
        .text = std::string(message),
        .help = std::string(help)});
  return kBadInput;
}

ExitCode fail_internally(std::string_view message) {
  fail(fmt::format("internal error: {}", message));
  return kInternalError;
}

void note(std::string_view message) {
  tell({.is_error = false, .code = {}, .text = std::string(message), .help = {}});
}

// The result as stdout gets it, which may end on a terminal: names from outside are made harmless.
// JSON escapes all of their control characters but this one.
static std::string harmless(std::string_view text, bool terminal, bool coloured) {
  if (terminal || (!text.starts_with('{') && !text.starts_with('[')))
    return printable(text, std::numeric_limits<std::size_t>::max(), coloured);
  std::string json;
  for (const char c : text) {
    if (c == '\x7f')
      json += "\\u007f";
    else
      json += c;
  }
  return json;
}

Status write_result(const std::string& path, std::string_view text) {
  if (!path.empty() && path != "-") return write_file(path, text);
  const bool terminal = current_caller == nullptr && on_terminal(path);
  const std::string shown = harmless(text, terminal, paper_for(path).colour);
  if (current_caller != nullptr) {
    current_caller->output += shown;
    return {};
  }
  std::cout << (terminal && !has_utf8() ? in_ascii(shown) : shown) << std::flush;
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
  std::error_code absent;
  const bool one_file = std::filesystem::equivalent(first, second, absent);  // By a hard link, too.
  if (!one_file && (known ? one != other : first != second)) return {};
  return Error{Error::Code::kInvalidInput,
               fmt::format("{} and {} both name '{}': give each its own file", first_option,
                           second_option, first)};
}

Status refuse_trace(const std::string& trace, const std::string& output,
                    std::span<const std::string_view> endings) {
  if (trace.empty()) return {};
  if (trace == "-")
    return Error{Error::Code::kInvalidInput, "--trace: a time line goes to a file, not to stdout"};
  FORESHARD_TRY(refuse_same_place("--output", output, "--trace", trace));
  auto known = report::check_ending(trace, endings);
  if (known.ok()) return known;
  return Error{known.error().code, "--trace: " + known.error().message};
}

Paper paper_for(const std::string& path) {
  const std::string width = variable("COLUMNS");
  const bool is_terminal = on_terminal(path);
  Paper paper{.colour = has_colours(is_terminal)};
  winsize size{};
  std::size_t columns = 0;
  std::from_chars(width.data(), width.data() + width.size(), columns);
  if (columns == 0 && is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    columns = size.ws_col;
  if (columns > 0) paper.width = std::clamp(columns, kNarrowest, kWidest);
  return paper;
}

void set_colours(std::string_view when) {
  colours = when;
}

std::string help_for_terminal(const std::string& help) {
  if (!on_terminal({})) return help;
  const std::size_t example = std::min(help.find("\nExample:\n"), help.size());
  const std::size_t width = paper_for({}).width;
  std::istringstream lines(help.substr(0, example));
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = description_in(line);
    if (columns(line) <= width || begin + kNarrowest / 2 > width) {
      text += line + "\n";
      continue;
    }
    std::string before = line.substr(0, begin);
    for (const std::string& part : wrapped(line.substr(begin), width - begin)) {
      text += before + part + "\n";
      before.assign(begin, ' ');
    }
  }
  return text + help.substr(example);
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
