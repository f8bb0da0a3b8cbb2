/// \file
/// Ctrl-C while there is something to keep: the first one asks the command to come to an end, the
/// second one ends the program.
///
///     const Interruption interruption;
///     while (!interruption.asked()) ...
#pragma once

namespace foreshard::cli {

/// One at a time. The destructor brings back what Ctrl-C did before.
class Interruption {
 public:
  Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  /// From any thread.
  static bool asked();

 private:
  void (*before_)(int);
};

}  // namespace foreshard::cli
