/// \file
/// What a prediction costs: energy and rent of a step, and the steps of a whole training.
///
///     energy = PUE x sum over devices of (idle power x step + (power - idle power) x busy time)
///     rent   = step x sum over devices of the price per time
///
/// A device is busy while it computes or communicates, by its class's breakdown; it is idle while
/// it waits for its host or for other stages. Devices of the cluster that the step does not use are
/// idle and rented all the time.
///
/// Not modelled: that a busy device draws less than its limit (nodes of eight H100 were measured at
/// 82 % of their rating in training: Latif et al., arXiv:2412.08602), above all while it
/// communicates; hosts, adapters and switches; storage and network traffic on the bill.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

#include "sim/simulate/prediction.h"
#include "topology/cluster_config.h"
#include "topology/cluster_view.h"

namespace foreshard::study {

/// Both empty for a step that never ends. `config` is what `cluster` was built from.
sim::Expense expense_of(const sim::Prediction& prediction, const ClusterView& cluster,
                        const ClusterConfig& config);

/// How long a training is.
struct TrainingLength {
  double amount = 0;
  bool tokens = true;  ///< Else samples, whatever these are.
  std::string unit;    ///< As written: "tokens", "samples", "sequences" or "images".
};

/// Reads "2T tokens", "300 B tokens", "1.2M samples", "90k images". \return kInvalidInput, with
/// what to write instead.
Result<TrainingLength> parse_training_length(std::string_view text);

}  // namespace foreshard::study
