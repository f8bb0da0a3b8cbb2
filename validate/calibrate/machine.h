/// \file
/// Calibrates the description of a machine: from replays on it to the YAML files that
/// `foreshard simulate` reads.
///
///     const auto machine = calibrate_machine(start, {{program, measurement}, ...});
///     for (const auto& [name, text] : files_of(*machine)) write_file(folder / name, text);
///     // foreshard simulate STUDY.yaml --cluster folder/cluster.yaml
///     //                               --communication folder/communication.yaml
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/result.h"
#include "base/yaml/loader.h"

#include "strategies/comm/parameters.h"
#include "topology/cluster_config.h"
#include "validate/calibrate/kernel_fit.h"
#include "validate/calibrate/link_fit.h"
#include "validate/calibrate/samples.h"

namespace foreshard::calibrate {

/// The description that calibration starts from.
struct MachineStart {
  ClusterConfig cluster;  ///< All nodes are of one kind.
  comm::Parameters communication;
};

struct MachineOptions {
  /// Fit the device to foreshard's own kernels too, in order to predict replays. On a GPU a
  /// framework runs other kernels (kernel_fit.h).
  bool own_kernels = false;
};

struct MachineCalibration {
  ClusterConfig cluster;           ///< The cluster with the fitted device.
  comm::Parameters communication;  ///< The library with the fitted forms.
  std::optional<KernelFit> kernels;
  std::optional<LinkFit> links;  ///< Absent if no collective was measured without overlap.
  std::string source;            ///< Machine, date, runs.
  std::vector<std::string> outliers;
  std::vector<std::string> notes;  ///< What was not fitted, and why.
};

/// \param runs  at least one, all on one machine.
/// \return errors of samples_of, fit_kernels and fit_links; kUnsupported for a cluster with several
///     kinds of nodes; kInvalidInput without runs.
Result<MachineCalibration> calibrate_machine(const MachineStart& start,
                                             const std::vector<MeasuredRun>& runs,
                                             const MachineOptions& options = {});

/// Where samples come from.
struct SampleSource {
  std::string text;        ///< Machine, date, runs: the `source` of the fitted numbers.
  std::string short_text;  ///< Short form, for each kernel that is listed. Invariant: not empty.
  std::vector<std::int32_t> device_of_rank{};  ///< Rank -> device, like Program::device_of_rank.
};
/// Calibration from samples that were gathered before. `notes` and `outliers` of the result hold
/// only what the fits add.
Result<MachineCalibration> calibrate_machine(const MachineStart& start, const Samples& samples,
                                             const SampleSource& source,
                                             const MachineOptions& options = {});

/// Whether `named`, a tool's name of a device ("NVIDIA H800"), is the name of a type other than
/// `device`, as far as names tell.
bool is_another(const DeviceType& device, const std::string& named);

/// The fault, in words, if `named`, a tool's name of a device ("AMD Instinct MI300X"), is of
/// another maker than `device`; nothing if the makers agree or one is unknown.
std::optional<std::string> other_maker(const DeviceType& device, const std::string& named);

/// Text for people: the numbers with intervals, which of them were kept and why, errors on held-out
/// kernels, and outliers.
std::string to_text(const MachineCalibration& machine, const Paper& paper = {});

struct OutputFile {
  std::string name;
  std::string text;
};
/// The files cluster.yaml, node.yaml, device.yaml, the efficiency file (under its own name) and
/// communication.yaml, which refer to each other by path. Reading them gives `machine` again.
std::vector<OutputFile> files_of(const MachineCalibration& machine);

}  // namespace foreshard::calibrate
