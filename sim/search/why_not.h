/// \file
/// Why a search did not choose the strategy that somebody had in mind: "tp8 pp4 zero1".
///
/// The named strategies are looked up in the space. A search over them alone then tells what ruled
/// them out: their sizes, their memory, a missing route; or, if they run, their lower bound,
/// estimate or simulation beside the winner's.
#pragma once

#include <string>
#include <string_view>

#include "base/record/forward.h"
#include "base/result.h"
#include "base/yaml/names.h"

#include "sim/search/space.h"

namespace foreshard::search {

struct WhyNot {
  enum class Cause : std::uint8_t {
    kSizes,       ///< The named sizes do not suit the model, the batch or the devices.
    kMemory,      ///< No named strategy fits in memory.
    kRoute,       ///< Some ranks cannot reach each other.
    kSpace,       ///< The space does not hold the named strategies.
    kBound,       ///< The lower bound is no less than the winner's time.
    kEstimate,    ///< The estimate is slower than the winner.
    kSimulation,  ///< The simulation was slower than the winner.
    kNothing,     ///< Nothing ruled the named strategies out.
    kTime,        ///< The time was over before they were looked into.
  };
  std::string asked;
  bool in_space = false;
  Cause cause = Cause::kNothing;
  std::string message;  ///< An explanation with numbers.
  /// What it would have taken to win; empty: nothing, or it is not known.
  std::string remedy = {};
};
const yaml::Names<WhyNot::Cause>& yaml_names(const WhyNot::Cause*);
const record::Record<WhyNot>& record_of(const WhyNot*);

/// `space`, restricted to the values that the words name: "tp8", "pp=4", "dp2", "cp2", "ep8",
/// "etp1", "mb1", "v2", "zero1", "hsdp2"; "none", "selective" or "full"; "layers=5,5,6,3"; the name
/// of a schedule; "sp" or "no-sp".
/// \return kInvalidInput for other words, and for two words about the same key; the message lists
///     what can be written.
Result<SearchSpace> narrowed(SearchSpace space, std::string_view words);

/// Whether a strategy has all the values that a narrowed space names.
bool is_within(const Strategy& strategy, const SearchSpace& space, const Model& model);

}  // namespace foreshard::search
