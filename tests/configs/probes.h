/// \file
/// What the program does with each kind of input file, as texts that tests compare: predictions,
/// Programs, times of collectives, findings.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/yaml/loader.h"
#include "evidence/row_format.h"

#include "sim/elastic/timeline.h"
#include "sim/study/interval.h"
#include "sim/sweep/sweep.h"
#include "strategies/comm/parameters.h"
#include "strategies/graph/graph_config.h"
#include "strategies/graph/hf_type.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_config.h"
#include "topology/hardware.h"
#include "validate/profile/kernel_names.h"
#include "validate/tables/collective_rows.h"
#include "validate/tables/kernel_rows.h"

namespace foreshard {

/// A result that an input may change. Probes of one kind are tried in turn; a fault is a result.
template <class T>
using Probes = std::vector<std::function<std::string(const T&)>>;

/// `name` is that of the file without its suffix.
Probes<DeviceType> probes_of(const DeviceType*, const std::string& name);
Probes<DeviceEfficiency> probes_of(const DeviceEfficiency*, const std::string& name);
Probes<DeviceDraw> probes_of(const DeviceDraw*, const std::string& name);
Probes<NodeConfig> probes_of(const NodeConfig*, const std::string& name);
Probes<ClusterConfig> probes_of(const ClusterConfig*, const std::string& name);
Probes<Transport> probes_of(const Transport*, const std::string& name);
Probes<Model> probes_of(const Model*, const std::string& name);
/// What is read of config.json files that state some of its keys.
Probes<HfType> probes_of(const HfType*, const std::string& name);
Probes<Strategy> probes_of(const Strategy*, const std::string& name);
Probes<Framework> probes_of(const Framework*, const std::string& name);
Probes<study::ParameterErrors> probes_of(const study::ParameterErrors*, const std::string& name);
Probes<GraphConfig> probes_of(const GraphConfig*, const std::string& name);
Probes<Hardware> probes_of(const Hardware*, const std::string& name);
Probes<comm::Parameters> probes_of(const comm::Parameters*, const std::string& name);
Probes<comm::nccl::Tables> probes_of(const comm::nccl::Tables*, const std::string& name);
Probes<accuracy::Exclusions> probes_of(const accuracy::Exclusions*, const std::string& name);
/// What rows are read as that use each word of the shipped format.
Probes<accuracy::RowFormat> probes_of(const accuracy::RowFormat*, const std::string& name);
/// What is read of tables whose rows meet each condition of the shipped format.
Probes<accuracy::KernelFormat> probes_of(const accuracy::KernelFormat*, const std::string& name);
/// What is understood of the names that its own patterns stand for.
Probes<profile::KernelNames> probes_of(const profile::KernelNames*, const std::string& name);
/// What a run comes to.
Probes<elastic::FailureRates> probes_of(const elastic::FailureRates*, const std::string& name);
Probes<elastic::Timeline> probes_of(const elastic::Timeline*, const std::string& name);
/// What its points set, what it asks of them and how it searches: that a value that is set changes
/// a study, the probes of studies say.
Probes<sweep::Sweep> probes_of(const sweep::Sweep*, const std::string& name);

/// Of a study: its report and its Program, or the error. `path` and `value` as `--set` takes them;
/// an empty path changes nothing.
std::string study_result(const std::string& file, const std::string& path, const std::string& value,
                         bool& refused);

}  // namespace foreshard
