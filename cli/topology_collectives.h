/// \file
/// `foreshard topology collectives`: algorithm, protocol and time of a collective on a cluster,
/// size by size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/declaration.h"

namespace foreshard::cli {

class TopologyCollectives {
 public:
  /// Adds the subcommand to `topology`.
  void declare(Declaration& topology);
  bool chosen() const { return chosen_; }
  Result<ExitCode> run(const Environment& environment) const;

 private:
  bool chosen_ = false;
  std::string cluster_;
  std::string operation_;
  std::string ranks_ = "all";
  std::string sizes_ = "1KiB:16GiB";
  std::string step_ = "2";
  std::string algorithm_;
  std::string protocol_;
  std::int64_t channels_ = 0;
  std::string communication_ = "nccl";
  std::string tuner_;
  bool all_ = false;
  std::string format_;
  std::vector<std::string> sets_;
  std::string output_;
};

}  // namespace foreshard::cli
