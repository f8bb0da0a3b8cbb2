/// \file
/// What of a step nobody measured, and the words in which every command says so.
///
/// A step rests on parameters of kernels, links and collectives, each with its evidence
/// (sim/compute/evidence.h). Those that were measured on the very devices are one thing; those that
/// come from a related device, a data sheet or the user are another. Where most of a step rests on
/// the latter, its time, and what follows from it (its cost, its rank, whether it meets a goal), is
/// said with a remark.
///
/// Not modelled: how sure prices and powers are.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulate/prediction.h"

namespace foreshard::study {

struct Unmeasured {
  /// The part of the step that rests on parameters which were not measured on its devices.
  double share = 0;
  /// These devices, and where their parameters come from: "MI300X (from data sheets)". Empty where
  /// the share is nothing.
  std::string on{};
  /// What `simulate` warns of: first the share, where it is most of the step; then what no measured
  /// step had, such as the passes of a mixture that is only evaluated.
  std::vector<std::string> remarks{};

  /// Whether most of the step is not measured: the first remark says so.
  bool is_most() const;
  bool operator==(const Unmeasured&) const = default;
};

/// \pre set_interval (interval.h) has filled in the prediction's warnings.
Unmeasured unmeasured_in(const sim::Prediction& prediction);

/// What a result says of itself: "61 % of the step rests on parameters that were not measured on
/// its devices: MI300X (from data sheets, 61 % of the step)".
std::string share_remark(double share, std::string_view on);

/// The remarks on several steps that are ranked or compared, each once, the largest share first:
/// "97 to 99 % of the step of 8 of 16 points rests on ...". Of a single step, its own.
/// \param what  one of them: "point".
std::vector<std::string> evidence_remarks(std::span<const Unmeasured* const> steps,
                                          std::string_view what);
/// The same as lines of text that begin with "! ".
std::string evidence_text(std::span<const Unmeasured* const> steps, std::string_view what);

/// {"unmeasured_share": 0.61, "unmeasured_on": "MI300X (from data sheets)", "remarks": [...]}.
nlohmann::ordered_json evidence_json(const Unmeasured& of);
/// What evidence_json wrote. Throws nlohmann::json::exception where it did not.
Unmeasured unmeasured_in(const nlohmann::ordered_json& json);

}  // namespace foreshard::study
