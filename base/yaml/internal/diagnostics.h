/// \file
/// The faults found so far, in the order of finding, each once.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "base/yaml/internal/sources.h"

namespace foreshard::yaml::internal {

struct Diagnostic {
  Mark mark;
  std::string message;
  std::string help;         ///< May have several lines; empty: none.
  std::vector<Mark> via{};  ///< The references that led here, innermost last.
};

/// "place: error: message", the line with a caret, "help: ...".
std::string render(const Diagnostic& diagnostic, const Sources& sources, std::size_t width);

class Diagnostics {
 public:
  void add(const Mark& mark, std::string message, std::string help = {});
  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }

  /// Diagnostics added from now on are in what the reference at `mark` led to.
  void enter(const Mark& mark) { via_.push_back(mark); }
  void leave() { via_.pop_back(); }

  /// All of them as one error.
  /// \pre !empty()
  Error error(const Sources& sources, std::size_t most, std::size_t width) const;

 private:
  std::vector<Diagnostic> list_;
  std::set<std::tuple<Mark, std::string>> seen_;
  std::vector<Mark> via_;
};

}  // namespace foreshard::yaml::internal
