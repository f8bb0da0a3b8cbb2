/// \file
/// A workload that must run, and when its activities end.
#pragma once

#include "tests/test.h"

#include "sim/engine/workload.h"

namespace foreshard::engine {

inline Timeline run(const Workload& w) {
  return value_of(run_fluid(w));
}
/// In seconds.
inline double finish(const Timeline& t, ActivityId a) {
  return t.finish[a.index()].in_base();
}

}  // namespace foreshard::engine
