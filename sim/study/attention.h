/// \file
/// Which attention a framework runs on the devices of a study.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "strategies/parallelism/strategy.h"
#include "topology/cluster_config.h"

namespace foreshard::study {

/// A kernel of attention that a device does not have is refused where the strategy asks for it. A
/// framework of the catalogue that is left to itself takes another one there, with a remark.
/// Not modelled: clusters where only some devices lack it. These are taken to have it, with a
/// remark.
/// \param groups      nodes with the devices of the study's ranks.
/// \param by_default  whether a file of the catalogue says which attention it is.
Status take_attention(Strategy& strategy, const std::vector<NodeGroup>& groups,
                      const yaml::Loader& loader, bool by_default,
                      std::vector<std::string>& remarks);

}  // namespace foreshard::study
