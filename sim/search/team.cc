// The ranks of a search by several processes (team.h), for `foreshard search` and the simulations
// of rank 0.
#include "sim/search/team.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/digest/sha256.h"
#include "base/threads.h"

#include "sim/search/asked.h"
#include "sim/search/device_subset.h"
#include "sim/search/internal/simulations.h"
#include "sim/study/run.h"

namespace foreshard::search {

team::Job job_of(const study::LoadedStudy& study, const std::string& version) {
  std::string work = sha256(version);
  for (const yaml::Input& input : study.inputs)
    work += sha256(std::filesystem::path(input.path).filename().string()) + sha256(input.bytes);
  for (const auto& [part, digest] : digests_of(study)) work += sha256(part) + digest;
  return {.work = sha256(work), .subject = "study", .remains = "search again"};
}

Status help(const study::LoadedStudy& study, const team::Team& team, const std::string& version,
            std::int64_t threads) {
  threads = std::min(threads, kMostThreads);
  std::vector<ClusterView> clusters;  // One per thread: a cluster caches its routes.
  for (std::int64_t i = 0; i < threads; ++i) {
    FORESHARD_ASSIGN(auto cluster, cluster_of(study, study.pool.devices));
    clusters.push_back(std::move(cluster));
  }
  FORESHARD_ASSIGN(const auto places, device_subsets_of(study, clusters.front()));
  const auto simulate = [&](int socket, const team::Message& task,
                            std::size_t thread) -> Result<bool> {
    FORESHARD_ASSIGN(const auto candidate, candidate_in(task, study, places));
    return team::send(socket, answer_of(simulated(study, clusters[thread], {}, candidate)));
  };
  return team::help(team, job_of(study, version), threads, simulate);
}

}  // namespace foreshard::search
