// Start and end of a task instance. A task in a chain of kernels (chains.h) has a part of the
// chain's activity, from which its times follow in proportion.
#include "sim/simulate/build.h"

namespace foreshard::sim {

Seconds start_of(const BuiltWorkload& built, const engine::Timeline& times,
                 std::size_t device_class, std::size_t instance) {
  const Seconds start = times.start[first_activity(built, device_class, instance).index()];
  const double part = built.part[device_class][instance].begin;
  if (part == 0) return start;
  const Seconds finish = times.finish[last_activity(built, device_class, instance).index()];
  return part == 1 ? finish : start + part * (finish - start);
}

Seconds end_of(const BuiltWorkload& built, const engine::Timeline& times, std::size_t device_class,
               std::size_t instance) {
  const Seconds finish = times.finish[last_activity(built, device_class, instance).index()];
  const double part = built.part[device_class][instance].end;
  if (part == 1) return finish;
  const Seconds start = times.start[first_activity(built, device_class, instance).index()];
  return start + part * (finish - start);
}

}  // namespace foreshard::sim
