/// \file
/// What a report shows: the result of a simulation and what was simulated. The writers
/// (text.h, json.h, csv.h) need nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

#include "sim/report/bundle.h"
#include "sim/simulate/prediction.h"
#include "sim/simulate/sensitivity.h"
#include "sim/study/alternatives.h"
#include "sim/study/draws.h"
#include "sim/study/run.h"
#include "sim/study/study.h"

namespace foreshard::report {

/// Description in words of what was predicted.
struct Subject {
  std::string name;
  std::string description;
  std::string model;
  std::string cluster;
  std::string strategy;
  std::string sample = "sequence";  ///< Word for one sample: "image"; "sample" for packed ones.
  /// Computed tokens per token that belongs to a sample: above 1 if samples are padded.
  double computed_per_token = 1;
};

struct InputDigest {
  std::string path;
  std::string sha256;
};

/// Time that tasks of one kind add to the critical path.
struct CriticalShare {
  std::string what;  ///< Block and task, for example "layer forward / mlp up".
  Seconds time;
  std::int64_t tasks = 0;
};

/// A task in words.
struct NamedTask {
  std::string who;   ///< "rank 5 (stage 1)".
  std::string what;  ///< "layer forward / mlp up".
  std::int32_t layer = 0;
  std::int32_t micro_batch = 0;
};
/// sim::Interruption in words.
struct InterruptedTask {
  NamedTask task;
  Seconds start;
  Seconds at;
  std::string on;
};
struct WaitingDevices {
  NamedTask task;
  std::int64_t count = 0;  ///< Number of devices of the class.
  Seconds since;
  NamedTask waits_for;
  bool failed = false;
  bool itself = false;  ///< Whether it waits for no other task.
};
struct InterruptionReport {
  Seconds at;
  std::vector<InterruptedTask> failed;
  std::vector<WaitingDevices> waiting;
  std::int64_t unfinished = 0;
};

/// Part of a step that rests on times measured by the user (sim/study/measured_times.h).
struct MeasuredShare {
  std::int64_t rows = 0;
  std::vector<std::string> unused;  ///< Unused rows in words, with their lines.
  Seconds time;                     ///< Time on the critical path that comes from measured times.
};

struct Report {
  Subject subject;
  sim::Prediction prediction;
  std::vector<Bytes> capacities;        ///< Device memory, one per class.
  study::MemoryMargin margin{};         ///< The memory that should stay free.
  std::vector<CriticalShare> critical;  ///< Sorted by time, largest first; ties by name.
  std::optional<InterruptionReport> interruption;
  std::vector<study::Alternative> alternatives;     ///< Given if the study does not fit.
  std::optional<sim::Sensitivities> sensitivities;  ///< Present if requested.
  std::vector<InputDigest> inputs;
  std::optional<study::DrawnSteps> drawn;  ///< Present if requested.
  std::optional<MeasuredShare> measured;   ///< Present if the user gave measured times.
  std::optional<Bundle> bundle{};          ///< Present if requested.
  std::optional<Seconds> wall;  ///< Wall time of the prediction itself; present if requested.
};

/// Whether the step fits, but leaves less than the margin on the device with the least room.
bool is_tight(const Report& report);

Subject subject_of(const study::LoadedStudy& study);

/// Groups the critical path by block and task.
std::vector<CriticalShare> critical_shares(const sim::Prediction& prediction,
                                           const program::Program& program);

/// Moves the prediction out of `run`.
Report report_of(const study::LoadedStudy& study, study::StudyRun run);

}  // namespace foreshard::report
