/// \file
/// `foreshard topology check`: finds what is implausible in a valid cluster.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/declaration.h"

namespace foreshard::cli {

class TopologyCheck {
 public:
  void declare(Declaration& topology);
  bool chosen() const { return chosen_; }
  Result<ExitCode> run(const Environment& environment) const;

 private:
  bool chosen_ = false;
  bool strict_ = false;
  std::string cluster_;
  std::string format_;
  std::vector<std::string> sets_;
  std::string output_;
};

}  // namespace foreshard::cli
