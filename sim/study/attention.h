/// \file
/// The attention implementation that a framework runs on the devices of a study.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "strategies/parallelism/strategy.h"
#include "topology/cluster_config.h"

namespace foreshard::study {

/// Chooses the attention implementation. If the strategy asks for one that a device does not have,
/// that is an error. If the framework is a catalogue file and the strategy leaves the choice to it,
/// the framework's fallback is taken, with a remark; and where all devices are of Blackwell's
/// generation or later, what it names for them (Framework::attention_on_blackwell).
/// Not modelled: clusters where only some devices lack the implementation. All are taken to have
/// it, with a remark.
/// \param groups      nodes with the devices of the study's ranks.
/// \param by_default  whether a file of the catalogue names the implementation.
Status take_attention(Strategy& strategy, const std::vector<NodeGroup>& groups,
                      const yaml::Loader& loader, bool by_default,
                      std::vector<std::string>& remarks);

}  // namespace foreshard::study
