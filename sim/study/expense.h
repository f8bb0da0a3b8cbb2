/// \file
/// The cost of a prediction: energy, CO2 and money per step, and the steps of a whole training.
///
///     energy      = PUE x (devices + hosts + network + other)
///     devices     = sum over devices of (idle power x step + (power - idle power) x sum over what
///                   it does of share x time)                                  (device_type.h)
///     hosts       = step x sum over devices of their node's host_power
///     network     = step x switches of the fabric x switch_power
///     rent        = step x sum over devices of the price per time, or of price / lifetime
///     usd         = rent + energy x electricity
///     CO2         = energy x carbon
///
/// A device's activities are its class's breakdown: each instant counts once, as kernel time if a
/// kernel runs. Time in kernels is divided among products, attention and memory-bound kernels in
/// proportion to the class's kernel times; the optimizer's kernels are memory-bound. Devices of the
/// cluster that the step does not use are idle and paid for all the time. Hosts and switches draw
/// the same power at all times.
///
/// Not modelled: communication that runs at the same time as a kernel adds to the device's draw;
/// hosts and switches draw less under low load; small or slow kernels need less than the power
/// limit; the site's losses at part load; the price of traffic; the residual value of a machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

#include "sim/simulate/prediction.h"
#include "topology/cluster_config.h"
#include "topology/cluster_view.h"

namespace foreshard::study {

/// The energy and the money are empty for a step that never ends. `config` is what `cluster` was
/// built from.
sim::Expense expense_of(const sim::Prediction& prediction, const ClusterView& cluster,
                        const ClusterConfig& config);

/// Price of a device per time: its part of an owned cluster's price, or its rent; nothing if
/// unknown.
std::optional<DollarsPerSecond> price_of(const DeviceType& type, const ClusterConfig& config);

/// Length of a training.
struct TrainingLength {
  double amount = 0;
  bool tokens = true;  ///< Whether `amount` counts tokens; otherwise samples, whatever they are.
  std::string unit;    ///< Unit as the user wrote it: "tokens", "samples", "sequences" or "images".
};

/// Reads "2T tokens", "300 B tokens", "1.2M samples", "90k images".
/// \return kInvalidInput, with advice what to write instead.
Result<TrainingLength> parse_training_length(std::string_view text);

}  // namespace foreshard::study
