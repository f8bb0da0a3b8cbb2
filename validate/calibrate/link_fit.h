/// \file
/// Fits the numbers of the forms of a communication library (strategies/comm/parameters.h) to
/// collectives that a replay measured on one cluster: of each form that they use, its start-up
/// (`base`, `hop`) and its rate (`channel_rate` where it has one, else the part of the slowest kind
/// of link that it reaches). Robust and with intervals, as kernel_fit.h. Each form has its own
/// numbers; collective_fit.h is for many machines that share them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/comm/parameters.h"
#include "topology/cluster_view.h"
#include "validate/calibrate/kernel_fit.h"
#include "validate/calibrate/samples.h"

namespace foreshard::calibrate {

struct LinkFit {
  comm::Parameters parameters;
  std::vector<FittedValue> values;
  FitError before;                    ///< All collectives, with the numbers of the start.
  FitError after;                     ///< All collectives, with the fitted ones.
  FitError held_out;                  ///< Every other size fitted, the others predicted, both ways.
  std::vector<std::string> outliers;  ///< Collectives more than 30 % off after the fit.
};

/// \param device_of_rank  as Program::device_of_rank.
/// \return kInvalidInput if there is no collective to fit to, or a rank has no device;
///     kUnsupported if `start` has no form for one of them; kInfeasible where devices have no
///     route.
Result<LinkFit> fit_links(const ClusterView& cluster, const comm::Parameters& start,
                          const std::vector<CollectiveSample>& collectives,
                          const std::vector<std::int32_t>& device_of_rank,
                          const std::string& source);

}  // namespace foreshard::calibrate
