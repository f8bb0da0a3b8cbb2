/// \file
/// What a prediction is told with: the result of a simulation beside what it is about. The writers
/// (text.h, json.h, csv.h) need nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

#include "sim/simulate/prediction.h"
#include "sim/study/alternatives.h"
#include "sim/study/run.h"
#include "sim/study/study.h"

namespace foreshard::report {

/// What was predicted, in words.
struct Subject {
  std::string name;
  std::string description;
  std::string model;
  std::string cluster;
  std::string strategy;
};

struct InputDigest {
  std::string path;
  std::string sha256;
};

/// What tasks of one kind add to the critical path.
struct CriticalShare {
  std::string what;  ///< Block and task, for example "layer forward / mlp up".
  Seconds time;
  std::int64_t tasks = 0;
};

struct Report {
  Subject subject;
  sim::Prediction prediction;
  std::vector<Bytes> capacities;                 ///< Of each class's device.
  std::vector<CriticalShare> critical;           ///< Most time first; ties by name.
  std::vector<study::Alternative> alternatives;  ///< Where it does not fit.
  std::vector<InputDigest> inputs;
  std::optional<Seconds> wall;  ///< Of the prediction itself; told only if there.
};

Subject subject_of(const study::LoadedStudy& study);

/// Groups the critical path by block and task.
std::vector<CriticalShare> critical_shares(const sim::Prediction& prediction,
                                           const program::Program& program);

/// Takes the prediction out of `run`.
Report report_of(const study::LoadedStudy& study, study::StudyRun run);

}  // namespace foreshard::report
