/// \file
/// Output of results and messages. Results go to stdout or a file, completely or not at all;
/// messages go to stderr. If the program is a library, both go to its
/// Caller (base/caller.h).
#pragma once

#include <condition_variable>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "base/page.h"
#include "base/result.h"
#include "cli/exit_code.h"

namespace foreshard::cli {

/// Prints the message, with "error: " in front unless it begins with a place in a file, and returns
/// the exit code. An unreadable file is a wrong argument, so kIo gives kBadInput like other codes.
ExitCode fail(const Error& error);
ExitCode fail(std::string_view message, std::string_view help = {});
/// Prints the message after "internal error: ".
/// \return kInternalError
ExitCode fail_internally(std::string_view message);

/// Prints a remark to stderr.
void note(std::string_view message);

/// Writes `text` to the file at `path`, or to stdout if `path` is empty or "-". A terminal whose
/// locale (LC_ALL, LC_CTYPE, LANG) is said and has no UTF-8 gets the signs of pages in ASCII.
Status write_result(const std::string& path, std::string_view text);

/// An error if two options name the same place, so that the second result would replace the first.
/// `first` and `second` are their values; empty: not given, which is no error.
Status refuse_same_place(std::string_view first_option, const std::string& first,
                         std::string_view second_option, const std::string& second);

/// An error if --trace names stdout, the file of the result, or a file whose name has none of the
/// `endings` (sim/report/trace.h).
Status refuse_trace(const std::string& trace, const std::string& output,
                    std::span<const std::string_view> endings);

/// The paper of a text for people that write_result() writes to `path`. Its width is that of the
/// terminal, or COLUMNS of the environment where it is set, from 80 to 140; elsewhere the usual
/// one. It is coloured as set_colours() says.
Paper paper_for(const std::string& path);

/// What this thread's papers have from now on: "auto" is colours on a terminal, unless NO_COLOR is
/// set or TERM is "dumb"; "always"; "never".
void set_colours(std::string_view when);

/// The help of a command; on a terminal, long descriptions are wrapped below their beginning. The
/// example, which is there to be copied, stays as it is.
std::string help_for_terminal(const std::string& help);

// A line on a terminal's stderr that shows what the program is doing, and for how long.
//
//     const Busy busy("simulating");   // after a second: "simulating, 3 s"

/// Shows the line while it lives; the destructor erases it. Nothing is shown in the first second,
/// or if stderr is not a terminal.
class Busy {
 public:
  explicit Busy(std::string what);
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy();

 private:
  void show();

  std::string what_;
  bool done_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace foreshard::cli
