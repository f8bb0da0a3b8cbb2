/// \file
/// The ideas that advice tries, and the candidates that they propose for a study.
///
/// To add an idea: a function that proposes candidates, its declaration below, and a line in the
/// table of ideas.cc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "base/yaml/loader.h"

#include "sim/search/estimate.h"
#include "sim/simulate/cost.h"
#include "sim/study/study.h"
#include "strategies/launch/abilities.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_view.h"

namespace foreshard::advise {

/// Why a candidate is not simulated.
enum class Refusal : std::uint8_t {
  kNone,
  kImpossible,  ///< The model, the batch, the schedule or the devices do not allow it.
  kFramework,   ///< The framework has no option for it.
};

struct Candidate {
  std::string idea{};
  std::string words{};
  std::vector<yaml::Override> settings{};
  bool hardware = false;
  Refusal refusal = Refusal::kNone;
  /// No simulation finds a shorter step (sim/search/estimate.h); zero if nothing is known.
  Seconds bound{};
};

/// What ideas start from.
class Start {
 public:
  /// All must outlive it.
  /// \param catalogue  where nodes with other devices are looked for.
  Start(const study::LoadedStudy& study, const ClusterView& cluster,
        const std::vector<std::filesystem::path>& catalogue);

  const study::LoadedStudy& study() const { return study_; }
  const std::vector<std::filesystem::path>& catalogue() const { return catalogue_; }
  const Strategy& strategy() const { return study_.strategy; }
  const Model& model() const { return study_.model; }
  /// Units that a pipeline divides: layers, or the units of a graph.
  std::int64_t units() const { return study_.graph ? study_.graph->units : study_.model.layers; }
  /// Null for a study of a graph or of a forward pass, which have no estimates.
  search::Estimator* estimator() const { return estimator_.get(); }
  /// Candidate::bound of a strategy that faults_in allows.
  Seconds bound_of(const Strategy& strategy) const;

 private:
  const study::LoadedStudy& study_;
  const std::vector<std::filesystem::path>& catalogue_;
  sim::SimulatedCost cost_;
  std::unique_ptr<search::Estimator> estimator_;
};

/// Collects candidates. Those with the same settings as an earlier one, or without any, are
/// dropped.
class Proposals {
 public:
  explicit Proposals(const Start& start);

  void begin(std::string_view idea) { idea_ = idea; }
  /// Proposes the study's strategy as `change` leaves it, with what follows from the change
  /// (follow.h).
  void strategy(const std::function<void(Strategy&)>& change);
  void hardware(std::string words, std::vector<yaml::Override> settings);

  const Start& start() const { return start_; }
  std::vector<Candidate> take() && { return std::move(candidates_); }

 private:
  void add(Candidate candidate);
  bool is_beyond_framework(const Strategy& strategy) const;
  Refusal refusal_of(const Strategy& strategy) const;

  const Start& start_;
  std::string idea_;
  std::vector<launch::Limitation> known_;  // Of the study's own strategy.
  std::set<std::string> seen_;
  std::vector<Candidate> candidates_;
};

struct Idea {
  std::string_view name;
  void (*propose)(Proposals& proposals);
  bool hardware = false;
};
std::span<const Idea> ideas();

/// The candidates of all ideas, in the order of the table.
/// \param hardware  whether to include ideas about hardware.
std::vector<Candidate> candidates_of(const Start& start, bool hardware);

// Degrees of parallelism, with the same number of devices (degrees.cc).
void propose_tensor(Proposals& proposals);
void propose_pipeline(Proposals& proposals);
void propose_context(Proposals& proposals);
void propose_experts(Proposals& proposals);
void propose_idle_devices(Proposals& proposals);

// How a pipeline runs (pipelines.cc).
void propose_micro_batches(Proposals& proposals);
void propose_schedules(Proposals& proposals);
void propose_cuts(Proposals& proposals);

// What is kept, sharded and overlapped (memory.cc).
void propose_recomputation(Proposals& proposals);
void propose_sequence(Proposals& proposals);
void propose_sharding(Proposals& proposals);
void propose_overlaps(Proposals& proposals);
void propose_buckets(Proposals& proposals);
void propose_rank_orders(Proposals& proposals);

// Other machines (hardware.cc).
void propose_network(Proposals& proposals);
void propose_devices(Proposals& proposals);

}  // namespace foreshard::advise
