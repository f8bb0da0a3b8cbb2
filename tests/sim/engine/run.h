/// \file
/// A workload that must run, and when its activities end.
#pragma once

#include "tests/test.h"

#include "sim/engine/workload.h"

namespace foreshard::engine {

inline Timeline run(const Workload& w) {
  auto t = run_fluid(w);
  EXPECT_TRUE(t) << t.error().message;
  return t ? *std::move(t) : Timeline{};
}
/// In seconds.
inline double finish(const Timeline& t, ActivityId a) {
  return t.finish[a.index()].in_base();
}

}  // namespace foreshard::engine
