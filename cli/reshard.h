/// \file
/// The modes of `foreshard reshard`. An option selects the mode: `--tensor` (one tensor),
/// `--from-strategy` (two strategies), `--checkpoint` (files on disk). Each mode has its own file
/// and a line in the table of reshard.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/declaration.h"

namespace foreshard::cli {

/// Options that several modes have.
struct ReshardOptions {
  std::string from;
  std::string to;
  std::string cluster;
  std::string to_strategy;
  std::string model;
  std::vector<std::int32_t> down;  ///< Numbers of failed devices, ascending.
  std::string format;
  std::string output;
  std::vector<std::string> sets;
};

class ReshardMode {
 public:
  virtual ~ReshardMode() = default;
  /// Declares the mode's own options, without the options in ReshardOptions.
  virtual void declare(Declaration& declaration) = 0;
  /// Whether the option that selects this mode was given.
  virtual bool asked() const = 0;
  /// "--name" of every option that the mode uses: its own options and some of ReshardOptions.
  virtual std::vector<std::string> options() const = 0;
  /// First components of the paths that `--set` accepts.
  virtual std::vector<std::string> settable(const ReshardOptions& options) const = 0;
  virtual Result<ExitCode> run(const ReshardOptions& options, const Environment& environment) = 0;
};

std::unique_ptr<ReshardMode> make_reshard_checkpoint();
std::unique_ptr<ReshardMode> make_reshard_strategy();
std::unique_ptr<ReshardMode> make_reshard_tensor();

}  // namespace foreshard::cli
