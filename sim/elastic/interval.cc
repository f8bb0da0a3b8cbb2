// Closed forms of the interval between checkpoints; run.cc calls them. A checkpoint that takes
// no time gives an interval of 0, which history.cc rounds up to one step.
#include "sim/elastic/interval.h"

#include <cmath>

namespace foreshard::elastic {

Seconds young_interval(Seconds checkpoint, Seconds between) {
  return std::sqrt(2 * (checkpoint / between)) * between;
}

Seconds daly_interval(Seconds checkpoint, Seconds between) {
  const double x = checkpoint / (2 * between);
  if (x >= 1) return between;
  return young_interval(checkpoint, between) * (1 + std::sqrt(x) / 3 + x / 9) - checkpoint;
}

Seconds expected_time(Seconds work, Seconds interval, Seconds checkpoint, Seconds restart,
                      Seconds between) {
  return between * std::exp(restart / between) * std::expm1((interval + checkpoint) / between) *
         (work / interval);
}

}  // namespace foreshard::elastic
