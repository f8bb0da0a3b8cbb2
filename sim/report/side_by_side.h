/// \file
/// Two predictions side by side: what differs in their inputs, in where the time goes, and in what
/// comes out, each by effect. Read from what `to_json` wrote, so that files will do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/study/evidence.h"

namespace foreshard::report {

/// What is compared of a prediction.
struct Outcome {
  std::string name;
  std::string model;
  std::string cluster;
  std::string strategy;
  bool feasible = true;
  struct Part {
    std::string key;  ///< "tp_comm"
    Seconds time;
  };
  std::vector<Part> breakdown;  ///< As to_json orders it.
  /// "step", "tokens/s", "peak memory", ...: what is not known of either is left out.
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
  /// Interval of the step (sim::Prediction::low, high), and what of it nobody measured.
  std::optional<Seconds> low;
  std::optional<Seconds> high;
  study::Unmeasured unmeasured;

  std::optional<double> figure(std::string_view key) const;
};
/// \return kInvalidInput if `json` is no prediction (schema foreshard.prediction/1).
Result<Outcome> read_outcome(std::string_view json);

/// An input that differs.
struct Change {
  std::string key;
  std::string a;  ///< Empty: there is none.
  std::string b;
  /// Step of A with this one alone as B has it; empty where that is no step.
  std::optional<Seconds> step;
};

/// A number of B at which both are the same.
struct Crossing {
  std::string key;
  std::string metric;  ///< "time"
  std::string low;     ///< The range that was searched, with units.
  std::string high;
  std::optional<std::string> value;
  /// Instead: two values between which the other side gets less, without their being the same.
  std::optional<std::pair<std::string, std::string>> between;
  /// Without a value: which side has less of the metric, "A": everywhere, or up to `between`.
  std::string better;
};

struct SideBySide {
  Outcome a;
  Outcome b;
  std::vector<Change> changes;
  std::optional<Crossing> crossing;

  /// Whether a machine may order the two steps otherwise: their intervals overlap.
  bool intervals_overlap() const;
};

/// Changes by what they do to the step alone, the largest first; those of which that is not known
/// last, by key.
void sort_by_effect(SideBySide& sides);

std::string to_text(const SideBySide& sides);
/// Schema foreshard.side_by_side/1.
std::string to_json(const SideBySide& sides);

}  // namespace foreshard::report
