/// \file
/// Chains: kernels that follow one another undisturbed, so that the engine can run them as one
/// activity.
///
/// A kernel continues the chain of the previous kernel if nothing can come between them:
/// - it waits for the previous kernel alone, and nothing else waits for that kernel;
/// - its launch is sure to be done by then: the launches since the chain's first kernel take no
///   longer than the chain's work so far, the first kernel started no earlier than its own launch,
///   and no kernel runs faster than alone.
///
/// Then start and end of the chain are exact whatever else runs. Within it, time is divided in
/// proportion to work: this is exact unless something else on the device slowed a part of the
/// chain.
///
/// A Sync that waits for one task alone, with nothing launched since, takes no time of its own: it
/// ends when that task ends, and begins no activity either.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategies/program/ir/expand.h"

namespace foreshard::sim {

/// The fractions of its activity's progress at which an instance begins and ends.
struct Part {
  double begin = 0;
  double end = 1;
};

/// Properties of an instance that decide whether it can be in a chain.
struct ChainItem {
  double work = 0;  ///< Seconds alone.
  bool is_kernel = false;
  /// Whether it is an optimizer kernel: it is accounted separately and thus never in one chain with
  /// other kernels.
  bool is_optimizer = false;
};

struct Chains {
  /// instance -> the first one of its chain; itself if it is in none.
  std::vector<std::int32_t> head;
  std::vector<Part> part;  ///< One entry per instance.
  /// One entry per instance: a head has the work of the whole chain, any other its own.
  std::vector<double> work;
};

/// \param items  one per instance of the expansion.
Chains find_chains(const program::Expansion& expansion, std::span<const ChainItem> items);

/// Chains in which every instance stands alone.
Chains no_chains(std::span<const ChainItem> items);

}  // namespace foreshard::sim
