/// \file
/// The time that the critical path of a step spent on each group of parameters, and the evidence of
/// these parameters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/simulate/communicators.h"
#include "sim/simulate/fold.h"
#include "sim/simulate/forms.h"
#include "sim/simulate/prediction.h"
#include "sim/simulate/simulate.h"

namespace foreshard::sim {

/// By group, device type and evidence, longest first. The host's launches and waiting are left out:
/// there are no separate measurements of their errors. The evidence of communication is the weaker
/// of its algorithm's parameters and, by `links`, of the links that it crosses.
std::vector<CriticalUse> critical_uses(const program::Program& program, const ClusterView& cluster,
                                       const comm::Parameters& communication,
                                       const Communicators& communicators,
                                       const CommunicatorForms& forms, const Folding& folding,
                                       const std::vector<DeviceClass>& classes,
                                       const std::vector<CriticalTask>& path,
                                       const std::map<std::string, LinkEvidence>& links);

/// Evidence of the times of a form among devices of this type. Measured devices, by name, have the
/// form's evidence; other devices of the same generation have kTransferred. An algorithm that the
/// library's file does not list is kUser.
yaml::Evidence evidence_of(const comm::Parameters& communication, std::string_view algorithm,
                           std::string_view protocol, const DeviceType& device);

}  // namespace foreshard::sim
