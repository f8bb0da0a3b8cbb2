/// \file
/// Chains: kernels that follow one another undisturbed, which the engine can run as one activity.
///
/// A kernel continues the chain of the one before it when nothing can come between them:
///  - it waits for that one alone, and nobody else waits for that one;
///  - its launch is sure to be done by then: the launches since the chain's first kernel take no
///    longer than the chain's work so far, and the first started no earlier than its own launch,
///    and no kernel runs faster than alone.
/// Then start and end of the chain are exact whatever else runs. Within it, time is shared out in
/// proportion to work: exact unless something else on the device slowed a part of the chain.
///
/// A Sync that waits for one task alone, with nothing launched since, takes no time of its own: it
/// is the end of that task, and begins no activity either.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategies/program/ir/expand.h"

namespace foreshard::sim {

/// The part of its activity's progress at which an instance begins and ends.
struct Part {
  double begin = 0;
  double end = 1;
};

/// What of an instance decides whether it can be in a chain.
struct ChainItem {
  double work = 0;  ///< Seconds alone.
  bool is_kernel = false;
  bool is_optimizer = false;  ///< Booked apart, so never in one chain with other kernels.
};

struct Chains {
  std::vector<std::int32_t> head;  ///< Per instance, the first of its chain; itself outside of one.
  std::vector<Part> part;          ///< Per instance.
  std::vector<double> work;        ///< Per instance: of a head, of the whole chain; else its own.
};

/// \param items  one per instance of the expansion.
Chains find_chains(const program::Expansion& expansion, std::span<const ChainItem> items);

/// Every instance for itself.
Chains no_chains(std::span<const ChainItem> items);

}  // namespace foreshard::sim
