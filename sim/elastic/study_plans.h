/// \file
/// Plans of a study's run: its step on fewer or more nodes, found by the search of `foreshard
/// search`, and the slices that then move, by the planner of `foreshard reshard`. Each question is
/// answered once and cached.
///
///   the study's number of nodes       its own strategy
///   fewer, more                       the search's best on the first nodes, using all of them or,
///                                     if that is faster, one or two less: those are idle
///   replicas lost                     the study's strategy with fewer replicas, which take as
///                                     many micro-batches as the batch then needs
///
/// Slices move between devices if some device holds every element, as in Replan; otherwise all
/// ranks read the checkpoint from storage. Failed nodes are assumed to be the last ones.
///
/// Not modelled: working nodes of a lost replica, which could help the others; an idle node fails
/// without stopping the run; lost replicas if ranks share experts or sets of ZeRO shards (the
/// result of reroute is then unknown).
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/elastic/history.h"
#include "sim/elastic/move.h"
#include "sim/elastic/replan.h"
#include "sim/search/search.h"
#include "sim/study/run.h"
#include "sim/study/study.h"

namespace foreshard::elastic {

struct StudyQuestion {
  study::StudyFiles files;
  std::vector<std::filesystem::path> catalogue;
  std::vector<yaml::Override> overrides;
  search::SearchOptions search;
  BytesPerSecond storage;  ///< Rate of all ranks together. Invariant: > 0.
};

class StudyPlans final : public Plans {
 public:
  /// \return The errors of load_study and run_study; kUnsupported for a graph or a step of mode:
  ///     forward; kInvalidInput if devices are down, chosen by `use`, or idle; kInfeasible if the
  ///     study itself does not fit.
  static Result<std::unique_ptr<StudyPlans>> make(StudyQuestion question);

  const study::LoadedStudy& study() const { return study_; }
  const sim::Prediction& prediction() const { return run_.prediction; }
  std::int64_t nodes() const { return run_.cluster.node_count(); }
  Bytes checkpoint() const { return checkpoint_; }
  /// Time in which all devices, at the same time, copy their part of the checkpoint to their hosts.
  /// \return The errors of ClusterView::host_route.
  Result<Seconds> copy_to_hosts() const;

  Result<std::optional<Seconds>> step_of(Arrangement arrangement) override;
  Result<StateTransfer> shift(Arrangement from, Arrangement to, std::int64_t failed,
                              Recovery recovery) override;
  Result<std::optional<std::int64_t>> replicas_on(const std::vector<bool>& down) override;

  /// Every arrangement that was asked for, and its strategy; nothing if none fits.
  const std::map<Arrangement, std::optional<Running>>& asked() const { return known_; }

 private:
  StudyPlans(StudyQuestion question, study::LoadedStudy study, study::StudyRun run);

  Result<std::optional<Running>> running_on(Arrangement arrangement) const;
  Result<std::optional<Running>> best_up_to(std::int64_t count);
  Result<StateTransfer> find_shift(Arrangement from, Arrangement to, std::int64_t failed,
                                   Recovery recovery);
  Result<StateTransfer> reload(const Running& to, const ClusterView& where) const;
  Result<const ClusterView*> view_of(std::int64_t nodes);
  std::vector<std::int32_t> failed_devices(const Running& from, std::int64_t nodes,
                                           const ClusterView& where) const;

  StudyQuestion question_;
  study::LoadedStudy study_;
  study::StudyRun run_;
  Bytes checkpoint_;
  std::vector<conversion::DeviceTraffic> held_;  // per device of the study, padding included
  std::map<Arrangement, std::optional<Running>> known_;
  std::map<std::int64_t, std::optional<Running>> searched_;  // number of nodes, all used -> best
  std::map<std::tuple<Arrangement, Arrangement, std::int64_t, Recovery>, StateTransfer> shifts_;
  // number of nodes, larger than the study's -> cluster
  std::map<std::int64_t, ClusterView> views_;
};

}  // namespace foreshard::elastic
