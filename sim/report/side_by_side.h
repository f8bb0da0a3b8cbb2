/// \file
/// Comparison of two predictions: what differs in their inputs (sorted by effect on the step), in
/// where the time goes, and in the results. It reads what `to_json` wrote, so saved files will do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/page.h"
#include "base/record/forward.h"
#include "base/result.h"
#include "base/units.h"

#include "sim/study/evidence.h"

namespace foreshard::report {

/// Parts of a step, by key: "tp_comm".
using Terms = std::vector<std::pair<std::string, Seconds>>;

/// The compared parts of a prediction.
struct Outcome {
  std::string name;
  std::string model;
  std::string cluster;
  std::string strategy;
  bool feasible = true;
  Terms breakdown;
  /// "step", "tokens/s", "peak memory", ...: figures that neither side knows are left out.
  struct Figure {
    std::string key;
    std::string unit;
    std::optional<double> value;
  };
  std::vector<Figure> figures;
  struct Input {
    std::string path;
    std::string sha256;
  };
  std::vector<Input> inputs;
  /// Interval of the step (sim::Prediction::low, high), and its unmeasured part.
  std::optional<Seconds> low;
  std::optional<Seconds> high;
  study::Unmeasured unmeasured;

  std::optional<double> figure(std::string_view key) const;
};
/// \return kInvalidInput if `json` is not a prediction (schema foreshard.prediction/1).
Result<Outcome> read_outcome(std::string_view json);

/// A part of two steps.
struct SharedTerm {
  std::string part;
  Seconds a;
  Seconds b;
};
/// The parts of `a`, largest difference first.
std::vector<SharedTerm> shared_terms(const Terms& a, const Terms& b);
/// The part's label, for people.
std::string label_of(const SharedTerm& term);
const record::Record<SharedTerm>& record_of(const SharedTerm*);

/// An input in which the two sides differ.
struct Change {
  std::string key;
  std::string a;  ///< Value on side A; empty: none.
  std::string b;
  /// Step of A with only this input changed to B's value; empty if that gives no step.
  std::optional<Seconds> step;
};

/// The value of one of B's numbers at which the metric is the same on both sides.
struct Crossing {
  std::string key;
  std::string metric;  ///< "time"
  std::string low;     ///< The range that was searched, with units.
  std::string high;
  std::optional<std::string> value;
  /// Alternative to `value`: two values between which the better side changes in a jump, without
  /// both ever being the same.
  std::optional<std::pair<std::string, std::string>> between;
  /// Without `value`: the side with less of the metric ("A"), everywhere or up to `between`.
  std::string better;
};

struct SideBySide {
  Outcome a;
  Outcome b;
  std::vector<Change> changes;
  std::optional<Crossing> crossing;

  /// Whether the intervals of the two steps overlap, so that a real machine may order them the
  /// other way round.
  bool intervals_overlap() const;
};

/// Sorts the changes by how much each one alone changes the step, largest first; changes whose
/// effect is unknown come last, sorted by key.
void sort_by_effect(SideBySide& sides);

const record::Record<SideBySide>& record_of(const SideBySide*);
std::string to_text(const SideBySide& sides, const Paper& paper = {});
/// Schema foreshard.side_by_side/1.
std::string to_json(const SideBySide& sides);

}  // namespace foreshard::report
