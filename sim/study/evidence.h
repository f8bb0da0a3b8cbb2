/// \file
/// The unmeasured part of a step, and the words in which every command reports it.
///
/// A step rests on parameters of kernels, links and collectives, each with its evidence
/// (sim/compute/evidence.h). They were either measured on the step's own devices, or they come from
/// a related device, a data sheet or the user. If most of a step rests on unmeasured parameters, a
/// remark comes with its time and with everything that follows from it (its cost, its rank, whether
/// it meets a goal).
///
/// Not modelled: the uncertainty of prices and powers.
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
  /// Part of the step that rests on parameters which were not measured on its devices.
  double share = 0;
  /// Those devices, and where their parameters come from: "MI300X (from data sheets)". Empty if the
  /// share is zero.
  std::string on{};
  /// Warnings of `simulate`: first the share, if it is most of the step; then features that no
  /// measured step had, such as the passes of a mixture that is only evaluated.
  std::vector<std::string> remarks{};

  /// Whether most of the step is unmeasured; the first remark then says so.
  bool is_most() const;
  bool operator==(const Unmeasured&) const = default;
};

/// \pre set_interval (interval.h) has filled in the prediction's warnings.
Unmeasured unmeasured_in(const sim::Prediction& prediction);

/// The remark on one step: "61 % of the step rests on parameters that were not measured on its
/// devices: MI300X (from data sheets, 61 % of the step)".
std::string share_remark(double share, std::string_view on);

/// The remarks on several steps that are ranked or compared, each remark once, the largest share
/// first: "97 to 99 % of the step of 8 of 16 points rests on ...". For a single step, its own
/// remarks.
/// \param what  the word for one of them: "point".
std::vector<std::string> evidence_remarks(std::span<const Unmeasured* const> steps,
                                          std::string_view what);
/// The remarks of evidence_remarks as lines that begin with "! ".
std::string evidence_text(std::span<const Unmeasured* const> steps, std::string_view what);

/// {"unmeasured_share": 0.61, "unmeasured_on": "MI300X (from data sheets)", "remarks": [...]}.
nlohmann::ordered_json evidence_json(const Unmeasured& of);
/// Inverse of evidence_json. Throws nlohmann::json::exception for anything else.
Unmeasured unmeasured_in(const nlohmann::ordered_json& json);

}  // namespace foreshard::study
