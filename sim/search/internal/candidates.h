/// \file
/// The candidates of one level of a search: the strategies of all places that may fit, ordered by
/// their estimates.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

#include "sim/search/device_subset.h"
#include "sim/search/internal/forms.h"
#include "sim/search/internal/race.h"
#include "sim/search/search.h"
#include "sim/search/space.h"
#include "sim/study/study.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// A key that differs between strategies of one search on the devices of a place.
std::string key_of(const Strategy& strategy);

/// earlier place -> keys of its listed strategies.
using ListedKeys = std::vector<std::set<std::string>>;

/// Removes the strategies that an earlier place has on the same devices. `tried` has the earlier
/// places; `listed` is of the place after them.
void forget_known(Enumeration& listed, const std::vector<DeviceSubset>& places,
                  const ListedKeys& tried);

/// All strategies of a place; where `stop` ends the listing early, those found by then.
Enumeration listed(const study::LoadedStudy& study, const ClusterView& cluster,
                   const DeviceSubset& place, const SearchSpace& space,
                   const std::function<bool()>& stop);

struct Ranked {
  std::vector<Candidate> candidates{};  ///< The least estimates first.
  Unlisted unlisted{};
};

/// Lists and estimates the strategies of the space at `options.space.level`. From level 2 on,
/// strategies stand for families (family.h): only members that may beat the best simulated strategy
/// of `result` are kept, and the others are counted in `unlisted`. The best strategies with unequal
/// shares of the batch are simulated into `result` (unequal_shares.h).
/// \param forms  forms of plans, shared with the other levels of the search.
/// \param before  the candidates of the level below; they stay candidates because they may need
///     less memory or money.
/// \param result  has the simulations of the levels below; counts are added to it.
Result<Ranked> ranked(const study::LoadedStudy& study, const ClusterView& cluster,
                      const std::vector<DeviceSubset>& places, const SearchOptions& options,
                      const std::shared_ptr<SharedPlanForms>& forms,
                      const std::vector<Candidate>& before, const Deadline& deadline,
                      SearchResult& result);

/// How many kinds of units a plan tells apart, wherever stages are cut.
std::int64_t kinds_of_units(const Model& model, const Strategy& strategy);

/// The part of each device's memory that strategies have to leave free.
double margin_of(const study::LoadedStudy& study, const SearchOptions& options);
/// Whether a simulated strategy fits, and keeps the memory margin where `options` demand it.
bool may_be_first(const Simulated& one, const SearchOptions& options);
/// The step of the fastest strategy for which may_be_first() is true; nothing where there is none.
std::optional<Seconds> best_step(const SearchResult& result, const SearchOptions& options);

}  // namespace foreshard::search
