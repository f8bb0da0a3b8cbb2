/// \file
/// Ctrl-C while there is something to keep: the first one asks the command to come to an end, the
/// second one ends the program.
///
///     const Interruption interruption;
///     while (!interruption.asked()) ...
#pragma once

#include <cstdint>

namespace foreshard::cli {

/// What becomes of that which is done when the first one comes.
enum class Kept : std::uint8_t {
  kShown,   ///< The command shows it.
  kStored,  ///< It is in a file, too.
};

/// One at a time. The destructor brings back what Ctrl-C did before.
class Interruption {
 public:
  explicit Interruption(Kept kept = Kept::kShown);
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  /// From any thread.
  static bool asked();

 private:
  void (*before_)(int);
};

}  // namespace foreshard::cli
