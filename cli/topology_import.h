/// \file
/// `foreshard topology import`: turns other tools' descriptions of machines into node and cluster
/// files.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/declaration.h"

namespace foreshard::cli {

class TopologyImport {
 public:
  void declare(Declaration& topology);
  bool chosen() const { return chosen_; }
  Result<ExitCode> run(const Environment& environment) const;

 private:
  bool chosen_ = false;
  std::string file_;
  std::string format_;
  std::string device_;
  std::string node_;
  std::string link_rate_;
  std::string output_;
};

}  // namespace foreshard::cli
