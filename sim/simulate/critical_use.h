/// \file
/// What the critical path of a step spent on which parameters, and how sure those are.
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

/// By group, device type and evidence, the longest first. The host's launches and waiting are left
/// out: of how wrong they are there are no measurements apart. Communication is as sure as its
/// algorithm's parameters and, by `links`, as the links that it crosses.
std::vector<CriticalUse> critical_uses(const program::Program& program, const ClusterView& cluster,
                                       const comm::Parameters& communication,
                                       const Communicators& communicators,
                                       const CommunicatorForms& forms, const Folding& folding,
                                       const std::vector<DeviceClass>& classes,
                                       const std::vector<CriticalTask>& path,
                                       const std::map<std::string, LinkEvidence>& links);

/// How sure the times of a form are among devices of this type: those that were measured, by name,
/// have the form's evidence; others of the same generation take it over from them (transferred). An
/// algorithm that the library's file does not list is the user's word.
yaml::Evidence evidence_of(const comm::Parameters& communication, std::string_view algorithm,
                           std::string_view protocol, const DeviceType& device);

}  // namespace foreshard::sim
