/// \file
/// Handles Ctrl-C while a command has results to keep: the first Ctrl-C asks the command to finish,
/// the second one ends the program. If the program is a library, its Caller (base/caller.h) is
/// asked instead.
///
///     const Interruption interruption;
///     while (!interruption.asked()) ...
#pragma once

#include <cstdint>

namespace foreshard::cli {

/// What happens to finished results at the first Ctrl-C.
enum class FinishedResults : std::uint8_t {
  kShown,   ///< The command shows them.
  kStored,  ///< The command shows them, and a file has them, too.
};

/// Only one object may exist at a time. The destructor restores the previous handler of Ctrl-C.
class Interruption {
 public:
  explicit Interruption(FinishedResults kept = FinishedResults::kShown);
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  /// Whether Ctrl-C was pressed, or the caller wants an end. May be called from any thread.
  /// \throws CallEnded if the caller wants no results
  static bool asked();

 private:
  void (*before_)(int) = nullptr;
};

}  // namespace foreshard::cli
