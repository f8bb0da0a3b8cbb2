/// \file
/// Where results and messages go: results to stdout or a file, whole or not at all; messages to
/// stderr.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/exit_code.h"

namespace foreshard::cli {

/// Prints "error: ..." unless the message begins with a place, and gives the exit code.
/// An unreadable file is a wrong argument, so kIo is kBadInput like the rest.
ExitCode fail(const Error& error);
ExitCode fail(std::string_view message, std::string_view help = {});

/// A remark on stderr.
void note(std::string_view message);

/// Writes `text` to the file at `path`, or to stdout if there is none (or it is "-").
Status write_result(const std::string& path, std::string_view text);

/// An error if the two options name the same place, where the second result would replace the
/// first. `first` and `second` are their values; empty: not given, and no fault.
Status refuse_same_place(std::string_view first_option, const std::string& first,
                         std::string_view second_option, const std::string& second);

/// An error if --trace names stdout or the file of the result.
Status refuse_trace(const std::string& trace, const std::string& output);

/// Whether colour is welcome on stdout: a terminal, NO_COLOR not set, TERM not dumb.
bool colour_on_stdout();

}  // namespace foreshard::cli
