/// \file
/// Fits a communication library's numbers (strategies/comm/parameters.h) to collectives that a
/// replay measured on one cluster. Each form (algorithm and protocol) that the collectives use gets
/// a start-up time (`base`, `hop`) and a rate: the channels' rate where that limits it at the
/// start, else its share of the slowest kind of link. The fit is robust and gives intervals, as in
/// kernel_fit.h. Every form has its own numbers; collective_fit.h fits numbers that many machines
/// share.
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
  FitError before;                    ///< All collectives, with the start values.
  FitError after;                     ///< All collectives, with the fitted values.
  FitError held_out;                  ///< Two-fold cross-validation, over alternating sizes.
  std::vector<std::string> outliers;  ///< Collectives more than 30 % off after the fit.
};

/// \param device_of_rank  as Program::device_of_rank.
/// \return kInvalidInput if there is no collective to fit to, or a rank has no device;
///     kUnsupported if `start` has no form for a collective; kInfeasible if two devices have no
///     route.
Result<LinkFit> fit_links(const ClusterView& cluster, const comm::Parameters& start,
                          const std::vector<CollectiveSample>& collectives,
                          const std::vector<std::int32_t>& device_of_rank,
                          const std::string& source);

}  // namespace foreshard::calibrate
