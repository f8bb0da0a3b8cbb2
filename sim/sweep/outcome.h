/// \file
/// What came out at a point of a sweep, and its text: what results files keep and workers send.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/yaml/names.h"

#include "sim/study/evidence.h"

namespace foreshard::sweep {

enum class PointStatus : std::uint8_t {
  kOk,
  kInfeasible,  ///< A sound question whose answer is no: too little memory, no route, no strategy.
  kInvalid,     ///< The values of the axes make no study.
};
const yaml::Names<PointStatus>& yaml_names(const PointStatus*);

/// A value that `--set` takes, of the strategy that a search found.
struct Setting {
  std::string path;
  std::string value;

  bool operator==(const Setting&) const = default;
};

/// A part of a step's time, by the key of sim/report/parts.h: "tp_comm".
struct Term {
  std::string key;
  Seconds time;

  bool operator==(const Term&) const = default;
};

/// What a faster part of the machine is worth (sim/simulate/sensitivity.h).
struct Worth {
  std::string speed;   ///< "network_bandwidth", as key_of(SpeedKind) writes it.
  std::string device;  ///< Name of the type; empty for what is not a device's.
  double elasticity = 0;
  Seconds step;  ///< With 10 % more of it alone.

  bool operator==(const Worth&) const = default;
};

/// Per step; whatever a longer work takes follows from it (ranking.h).
/// Money is all that is paid: rent or what is written off, and electricity (Expense::usd).
struct StepFigures {
  Seconds step;
  Seconds low;  ///< As of a Prediction.
  Seconds high;
  study::Unmeasured unmeasured;  ///< What of the step nobody measured.
  double samples = 0;
  double tokens = 0;
  double mfu = 0;
  double tflops_per_device = 0;
  std::int64_t devices = 0;
  std::int64_t idle = 0;
  Bytes peak;          ///< Of the device with the least room.
  Bytes capacity;      ///< What it has for tensors.
  bool tight = false;  ///< It leaves less than the study's memory margin.
  std::optional<Dollars> usd;
  std::optional<Joules> energy;
  std::optional<Kilograms> carbon;  ///< CO2.
  /// Device types whose nodes say no host_power: `energy` is without these hosts.
  std::vector<std::string> without_host_power;
  /// Device types without a price, and without power: why `usd`, or `energy`, is not known.
  std::vector<std::string> without_price;
  std::vector<std::string> without_power;
  std::optional<double> training_steps;
  std::vector<Term> terms;  ///< Of the device that finishes last; they sum to the step.
  std::optional<std::vector<Worth>> worth;  ///< Most worth first; where the sweep asks for it.

  Bytes headroom() const { return capacity - peak; }
  bool operator==(const StepFigures&) const = default;
};

struct Outcome {
  PointStatus status = PointStatus::kInvalid;
  std::string why;  ///< Where it is not kOk: for people.
  std::string model;
  std::string cluster;
  std::string strategy;           ///< In words (search::in_words); of kInfeasible, the one that
                                  ///< comes closest.
  std::vector<Setting> settings;  ///< That make the study's strategy the one found; if searched.
  std::optional<Bytes> missing;   ///< Of memory, where that is why.
  std::optional<StepFigures> figures;  ///< Where kOk.
  /// This machine has too little memory to simulate it: another run may say otherwise.
  bool refused_here = false;

  bool operator==(const Outcome&) const = default;
};

/// In base units, each number so that it reads back as the same one; sizes in whole bytes.
nlohmann::ordered_json json_of(const Outcome& outcome);
/// One line.
std::string text_of(const Outcome& outcome);
/// \return kInvalidInput if `text` is none that text_of writes.
Result<Outcome> outcome_in(std::string_view text);

}  // namespace foreshard::sweep
