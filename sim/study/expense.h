/// \file
/// What a prediction costs: energy, CO2 and money of a step, and the steps of a whole training.
///
///     energy      = PUE x (devices + hosts + network + other)
///     devices     = sum over devices of (idle power x step + (power - idle power) x sum over what
///                   it does of share x time)                                  (device_draw.h)
///     hosts       = step x sum over devices of their node's host_power
///     network     = step x switches of the fabric x switch_power
///     rent        = step x sum over devices of the price per time, or of price / lifetime
///     usd         = rent + energy x electricity
///     CO2         = energy x carbon
///
/// What a device does is its class's breakdown: each instant counts once, under kernels if one
/// runs. Time in kernels is divided among products, attention and memory-bound ones as they share
/// the class's kernels; the optimizer's are memory-bound. Devices of the cluster that the step does
/// not use are idle and paid for all the time, hosts and switches draw the same at all times.
///
/// Not modelled: what communication beside a kernel adds to that kernel's draw; that hosts and
/// switches draw less when little goes on; that small or slow kernels need less than the limit;
/// the site's losses at part load; traffic on the bill; what is left of a machine's price.
#pragma once

#include <optional>
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

/// What is paid for a device, by time: its part of the price of an owned cluster, or rent; nothing
/// where that is not known.
std::optional<DollarsPerSecond> price_of(const DeviceType& type, const ClusterConfig& config);

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
