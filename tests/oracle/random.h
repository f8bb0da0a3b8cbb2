/// \file
/// Random numbers by counter: the value belongs to an element of the logical tensor, not to the
/// rank that draws it, so that a sharded run and a serial one drop the same elements.
///
///     uniform(key_of(seed, "attention_residual.mask"), 17)   // in [0, 1), always the same
#pragma once

#include <cstdint>
#include <string_view>

namespace foreshard::execute {

/// A stream of numbers of its own for every (key, name) and (key, number).
std::uint64_t key_of(std::uint64_t key, std::string_view name);
std::uint64_t key_of(std::uint64_t key, std::int64_t number);

/// Element `counter` of the stream, uniform in [0, 1).
///
/// Source: the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014), applied to key and counter; counters in place of states as in Salmon
/// et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
double uniform(std::uint64_t key, std::int64_t counter);

}  // namespace foreshard::execute
