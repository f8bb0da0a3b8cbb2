/// \file
/// `foreshard reshard` has several modes, told apart by what it is given: a tensor (`--tensor`),
/// two strategies (`--from-strategy`), files on disk (`--checkpoint`). Each has its file and a line
/// in the table of reshard.cc.
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
  std::vector<std::int32_t> down;  ///< Ascending.
  std::string format;
  std::string output;
  std::vector<std::string> sets;
};

class ReshardMode {
 public:
  virtual ~ReshardMode() = default;
  /// Its own options, those of ReshardOptions excepted.
  virtual void declare(Declaration& declaration) = 0;
  /// Whether the option that asks for it was given.
  virtual bool asked() const = 0;
  /// "--name" of every option that it uses, its own and those of ReshardOptions.
  virtual std::vector<std::string> options() const = 0;
  /// What `--set` reaches: the first parts of its paths.
  virtual std::vector<std::string> settable(const ReshardOptions& options) const = 0;
  virtual Result<ExitCode> run(const ReshardOptions& options, const Environment& environment) = 0;
};

std::unique_ptr<ReshardMode> make_reshard_checkpoint();
std::unique_ptr<ReshardMode> make_reshard_strategy();
std::unique_ptr<ReshardMode> make_reshard_tensor();

}  // namespace foreshard::cli
