/// \file
/// The time between two checkpoints, and the resulting time of a run, in closed form.
///
///     Young     tau = sqrt(2 delta M)
///     Daly      tau = sqrt(2 delta M) [1 + sqrt(x)/3 + x/9] - delta,  x = delta / (2 M);
///               tau = M if x >= 1
///     run       T = M exp(R/M) (exp((tau + delta)/M) - 1) T_s / tau
///
/// delta: time for which a checkpoint keeps the run from computing; M: mean time between
/// interruptions; R: time of a restart, which may itself be interrupted; T_s: time of the run
/// without interruptions and checkpoints. Interruptions are exponential.
/// Source: Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9),
/// 1974; Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
/// FGCS 22(3), 2006.
#pragma once

#include "base/units.h"

namespace foreshard::elastic {

/// \pre Both are > 0.
Seconds young_interval(Seconds checkpoint, Seconds between);
Seconds daly_interval(Seconds checkpoint, Seconds between);

/// The mean time of a run.
/// \pre interval, between > 0
Seconds expected_time(Seconds work, Seconds interval, Seconds checkpoint, Seconds restart,
                      Seconds between);

}  // namespace foreshard::elastic
