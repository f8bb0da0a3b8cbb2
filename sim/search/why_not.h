/// \file
/// Why a search did not choose the strategy that somebody had in mind: "tp8 pp4 zero1".
///
/// What is named is looked for in the space, and then a search over it alone tells what ruled it
/// out: its sizes, its memory, a missing route; or, if it runs, its lower bound, its estimate or
/// its simulation beside those of the winner.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

#include "sim/search/space.h"

namespace foreshard::search {

struct WhyNot {
  enum class Cause : std::uint8_t {
    kSizes,       ///< They do not suit the model, the batch or the devices.
    kMemory,      ///< None of them fits.
    kRoute,       ///< Their ranks cannot reach each other.
    kSpace,       ///< The space does not hold them.
    kBound,       ///< They cannot be faster than the winner.
    kEstimate,    ///< By estimate they are slower.
    kSimulation,  ///< They were simulated as slower.
    kNothing,     ///< They won.
    kTime,        ///< They were not looked into: the time was over.
  };
  std::string asked;
  bool in_space = false;
  Cause cause = Cause::kNothing;
  std::string message;      ///< With numbers.
  std::string remedy = {};  ///< What it would have taken; empty: nothing, or it is not known.
};
std::string_view name_of(WhyNot::Cause cause);

/// `space` with what the words name alone: "tp8", "pp=4", "dp2", "cp2", "ep8", "etp1", "mb1", "v2",
/// "zero1", "hsdp2"; "none", "selective" or "full"; "layers=5,5,6,3"; the name of a schedule; "sp"
/// or "no-sp".
/// \return kInvalidInput for other words, and for two that speak of the same; says which there are.
Result<SearchSpace> narrowed(SearchSpace space, std::string_view words);

/// Whether a strategy has all the values that a narrowed space names.
bool is_within(const Strategy& strategy, const SearchSpace& space, const Model& model);

}  // namespace foreshard::search
