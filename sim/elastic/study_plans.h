/// \file
/// Plans of a study's run: what it takes on fewer or more nodes, found by the search of `foreshard
/// search`, and the slices that move then, by the planner of `foreshard reshard`. Each question is
/// answered once.
///
///   as many nodes as the study has    its own strategy
///   fewer, more                       the search's best on the first so many nodes, or on one or
///                                     two less where that is faster: the others idle
///   replicas lost                     the study's strategy with that many replicas less, which
///                                     take as many micro-batches as the batch then needs
///
/// Slices move between devices where somebody has every element, as in Replan; else all ranks read
/// the checkpoint from storage. The nodes that fail stand for all that might: the last ones.
///
/// Not modelled: nodes of a lost replica that work, which could help the others; that a node that
/// idles fails without a stop; ranks that share experts, or sets of ZeRO shards, when replicas are
/// lost (reroute is then not known).
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
  BytesPerSecond storage;  ///< Of all ranks together. Invariant: > 0.
};

class StudyPlans final : public Plans {
 public:
  /// \return the errors of load_study and run_study; kUnsupported for a graph or a step of mode:
  ///     forward; kInfeasible where the study itself does not fit.
  static Result<std::unique_ptr<StudyPlans>> make(StudyQuestion question);

  const study::LoadedStudy& study() const { return study_; }
  const sim::Prediction& prediction() const { return run_.prediction; }
  std::int64_t nodes() const { return run_.cluster.node_count(); }
  Bytes checkpoint() const { return checkpoint_; }
  /// What all devices take to copy what they hold of it to their hosts, at the same time.
  /// \return as ClusterView::host_route.
  Result<Seconds> copy_to_hosts() const;

  Result<std::optional<Seconds>> step_of(Arrangement arrangement) override;
  Result<Shift> shift(Arrangement from, Arrangement to, std::int64_t failed,
                      Recovery recovery) override;
  Result<std::optional<std::int64_t>> replicas_on(const std::vector<bool>& down) override;

  /// Every arrangement that was asked for, and its strategy; nothing where none fits.
  const std::map<Arrangement, std::optional<Running>>& asked() const { return known_; }

 private:
  StudyPlans(StudyQuestion question, study::LoadedStudy study, study::StudyRun run);

  Result<std::optional<Running>> running_on(Arrangement arrangement) const;
  Result<std::optional<Running>> best_up_to(std::int64_t count);
  Result<Shift> find_shift(Arrangement from, Arrangement to, std::int64_t failed,
                           Recovery recovery);
  Result<Shift> reload(const Running& to, const ClusterView& where) const;
  Result<const ClusterView*> view_of(std::int64_t nodes);
  std::vector<std::int32_t> failed_devices(const Running& from, std::int64_t nodes,
                                           const ClusterView& where) const;

  StudyQuestion question_;
  study::LoadedStudy study_;
  study::StudyRun run_;
  Bytes checkpoint_;
  std::vector<conversion::DeviceTraffic> held_;  // by its devices, padding included
  std::map<Arrangement, std::optional<Running>> known_;
  std::map<std::int64_t, std::optional<Running>> searched_;  // on all of so many nodes
  std::map<std::tuple<Arrangement, Arrangement, std::int64_t, Recovery>, Shift> shifts_;
  std::map<std::int64_t, ClusterView> views_;  // with more nodes than the study
};

}  // namespace foreshard::elastic
