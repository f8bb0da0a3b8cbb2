/// \file
/// Where results and messages go: results to stdout or a file, whole or not at all; messages to
/// stderr.
#pragma once

#include <optional>
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
std::optional<Error> write_result(const std::string& path, std::string_view text);

/// Whether colour is welcome on stdout: a terminal, NO_COLOR not set, TERM not dumb.
bool colour_on_stdout();

}  // namespace foreshard::cli
