/// \file
/// A machine described by what was measured on it: from replays to the YAML files that simulate
/// reads.
///
///     const auto machine = calibrate_machine(start, {{program, measurement}, ...});
///     for (const auto& [name, text] : files_of(*machine)) write_file(folder / name, text);
///     // foreshard simulate STUDY.yaml --cluster folder/cluster.yaml
///     //                               --communication folder/communication.yaml
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "strategies/comm/parameters.h"
#include "topology/cluster_config.h"
#include "validate/calibrate/kernel_fit.h"
#include "validate/calibrate/link_fit.h"
#include "validate/calibrate/samples.h"

namespace foreshard::calibrate {

/// What is known before.
struct MachineStart {
  ClusterConfig cluster;  ///< Of nodes of one kind.
  comm::Parameters communication;
};

struct MachineOptions {
  /// Fit the device to foreshard's own kernels too, for predictions of replays: on a GPU they are
  /// not what a framework runs (kernel_fit.h).
  bool own_kernels = false;
};

struct MachineCalibration {
  ClusterConfig cluster;           ///< With the fitted device.
  comm::Parameters communication;  ///< With the fitted forms.
  std::optional<KernelFit> kernels;
  std::optional<LinkFit> links;  ///< Absent where no collective was measured alone.
  std::string source;            ///< Machine, date, runs.
  std::vector<std::string> outliers;
  std::vector<std::string> notes;  ///< What was not fitted, and why.
};

/// \param runs  at least one; of one machine.
/// \return as samples_of, fit_kernels and fit_links; kUnsupported for a cluster of several kinds of
///     nodes; kInvalidInput without runs.
Result<MachineCalibration> calibrate_machine(const MachineStart& start,
                                             const std::vector<MeasuredRun>& runs,
                                             const MachineOptions& options = {});

/// Where samples come from.
struct SampleSource {
  std::string text;        ///< Machine, date, runs: becomes `source` of what is fitted.
  std::string short_text;  ///< Of each kernel that is listed. Invariant: not empty.
  std::vector<std::int32_t> device_of_rank{};  ///< As Program::device_of_rank.
};
/// The same from samples that somebody gathered: `notes` and `outliers` hold what the fits add.
Result<MachineCalibration> calibrate_machine(const MachineStart& start, const Samples& samples,
                                             const SampleSource& source,
                                             const MachineOptions& options = {});

/// Whether a device that a tool calls `named` ("NVIDIA H800") is of another type, as far as the
/// name tells.
bool is_another(const DeviceType& device, const std::string& named);

/// What is wrong where a tool's name of a device ("AMD Instinct MI300X") is that of another maker
/// than the device's; nothing where one of the makers is unknown.
std::optional<std::string> other_maker(const DeviceType& device, const std::string& named);

/// For people: numbers with intervals, which were kept and why, errors on held-out kernels,
/// outliers.
std::string to_text(const MachineCalibration& machine);

struct OutputFile {
  std::string name;
  std::string text;
};
/// cluster.yaml, node.yaml, device.yaml, the efficiency file (by its name) and communication.yaml,
/// which refer to each other by path. They read back as what they were written from.
std::vector<OutputFile> files_of(const MachineCalibration& machine);

}  // namespace foreshard::calibrate
