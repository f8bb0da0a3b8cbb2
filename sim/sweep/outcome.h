/// \file
/// The outcome of a point of a sweep, and its text form, which results files keep and workers send.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/record/forward.h"
#include "base/result.h"
#include "base/units.h"
#include "base/yaml/names.h"

#include "sim/study/evidence.h"

namespace foreshard::sweep {

enum class PointStatus : std::uint8_t {
  kOk,
  kInfeasible,  ///< A valid question whose answer is no: too little memory, no route, no strategy.
  kInvalid,     ///< The values of the axes make no study.
};
const yaml::Names<PointStatus>& yaml_names(const PointStatus*);

/// A path and its value, for `--set`: part of the strategy that a search found.
using Setting = std::pair<std::string, std::string>;

/// A part of a step and its time, by the key of sim/study/records.h: "tp_comm".
using Term = std::pair<std::string, Seconds>;

/// The effect of a faster part of the machine (sim/simulate/sensitivity.h).
struct Worth {
  std::string speed;                  ///< "network_bandwidth", as key_of(SpeedKind) writes it.
  std::optional<std::string> device;  ///< The device type, where the part belongs to one.
  double elasticity = 0;
  Seconds step;  ///< Step time with 10 % more of this speed alone.

  bool operator==(const Worth&) const = default;
};

/// Figures per step; the figures of a longer work follow from them (ranking.h). Money is all costs:
/// rent or depreciation, and electricity (Expense::usd).
struct StepFigures {
  Seconds step;
  Seconds low;  ///< Interval of the step, as in a Prediction.
  Seconds high;
  study::Unmeasured unmeasured;  ///< Unmeasured part of the step.
  double samples = 0;
  double tokens = 0;
  double mfu = 0;
  double tflops_per_device = 0;
  std::int64_t devices = 0;
  std::int64_t idle = 0;
  Bytes peak;          ///< Peak on the device with the least room.
  Bytes capacity;      ///< Memory of that device for tensors.
  bool tight = false;  ///< Whether it leaves less than the study's memory margin.
  std::optional<Dollars> usd;
  std::optional<Joules> energy;
  std::optional<Kilograms> carbon;  ///< CO2.
  /// Device types whose nodes state no host_power: `energy` excludes these hosts.
  std::vector<std::string> without_host_power;
  /// Device types without a price, and without power: the reason why `usd`, or `energy`, is
  /// unknown.
  std::vector<std::string> without_price;
  std::vector<std::string> without_power;
  std::optional<double> training_steps;
  /// Parts of the step on the device that finishes last; they sum to the step.
  std::vector<Term> terms;
  /// Largest effect first; present if the sweep asks for it.
  std::optional<std::vector<Worth>> worth;

  Bytes headroom() const { return capacity - peak; }
  bool operator==(const StepFigures&) const = default;
};

struct Outcome {
  PointStatus status = PointStatus::kInvalid;
  std::string why;  ///< Reason, for people, if it is not kOk.
  std::string model;
  std::string cluster;
  /// Strategy in words (search::in_words); if kInfeasible, the strategy that comes closest.
  std::string strategy;
  /// Settings that turn the study's strategy into the one found by the search, if any.
  std::vector<Setting> settings;
  std::optional<Bytes> missing;        ///< Bytes of memory that are missing, if that is the reason.
  std::optional<StepFigures> figures;  ///< Present if kOk.
  /// Whether this machine has too little memory to simulate it; another run may give another
  /// result.
  bool refused_here = false;

  bool operator==(const Outcome&) const = default;
};

const record::Record<Worth>& record_of(const Worth*);
const record::Record<Outcome>& record_of(const Outcome*);

/// The outcome in one line. Each number reads back as the same number; sizes are whole bytes.
std::string text_of(const Outcome& outcome);
/// \return kInvalidInput if `text` does not come from text_of.
Result<Outcome> outcome_in(std::string_view text);

}  // namespace foreshard::sweep
