/// \file
/// Loads what a command line names: clusters, a model and a strategy that fit together without a
/// cluster, and strategies and models imported from the configuration of another framework.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "cli/command.h"

#include "sim/study/study.h"
#include "strategies/graph/model.h"
#include "strategies/launch/launch.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_config.h"

namespace foreshard::cli {

/// The cluster that `name` means, in a form that the loader takes. `name` is a file, a catalogue
/// name or YAML in braces. If it names a node, the result is YAML in braces of a cluster with only
/// that node; otherwise it is `name` itself.
std::string as_cluster(const std::string& name,
                       const std::vector<std::filesystem::path>& catalogue);

/// Loads a cluster; `name` is resolved by as_cluster(), so it may also name a node.
Result<ClusterConfig> load_cluster(const std::string& name, yaml::Loader& loader,
                                   const std::vector<std::filesystem::path>& catalogue,
                                   std::string_view at = {});

/// \param name  a catalogue name, a file, or a config.json of Hugging Face.
/// \param at  the path under which overrides address the model.
Result<Model> load_model(const std::string& name, yaml::Loader& loader, std::string_view at);

/// \return kInvalidInput with all faults of the strategy for `model`. It is assumed that there are
///     as many devices as the strategy needs.
Result<Strategy> load_strategy(const std::string& name, const Model& model,
                               const Environment& environment);

struct ImportOptions {
  std::string file{};       ///< Path of the configuration, or "-" (stdin).
  std::string arguments{};  ///< Options of Megatron-LM, instead of a file.
  std::string format{};     ///< Same as launch::Request::format.
  std::optional<std::int64_t> devices{};
  std::vector<yaml::Override> sets{};  ///< Overrides; only those of strategy and model are used.
};

/// \return errors of launch::import_launch; kIo if the file cannot be read.
Result<launch::Imported> import_given(const ImportOptions& options);

/// Puts the imported strategy into `files`, and the imported model if neither a model nor a study
/// is given. If a model is given, only the imported sequence length is used.
/// \return kInvalidInput if the model lacks something.
Status add_to_study(const launch::Imported& imported, study::StudyFiles& files,
                    std::vector<yaml::Override>& overrides);

/// Reports on stderr which settings were used, which have no effect and which are not supported.
void note_report(const launch::Imported& imported);

}  // namespace foreshard::cli
