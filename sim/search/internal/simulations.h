/// \file
/// Simulations of the candidates of a search, several at a time: by threads of this process and,
/// where there is a team (sim/search/team.h), by its other ranks. Results do not depend on which
/// thread or rank ran what, or when.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/team/queue.h"
#include "base/team/team.h"

#include "sim/search/device_subset.h"
#include "sim/search/internal/race.h"
#include "sim/search/search.h"

namespace foreshard::search {

/// \return the errors of sim::simulate.
Result<Simulated> simulated(const study::LoadedStudy& study, const ClusterView& cluster,
                            const SearchOptions& options, const Candidate& candidate);

/// Rent of these devices; nothing where the price of one is not known.
std::optional<DollarsPerSecond> rent_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                        std::span<const std::int32_t> devices);

class Simulations {
 public:
  /// All must outlive it.
  Simulations(const study::LoadedStudy& study, const SearchOptions& options,
              const Deadline& deadline);
  /// Ends as team::serve says.
  ~Simulations();
  Simulations(const Simulations&) = delete;
  Simulations& operator=(const Simulations&) = delete;

  /// Connects the other ranks of `options.team`, which then wait for the first round.
  /// \param places  all places of candidates; it may be filled until the first round, and must
  ///     outlive this.
  /// \return the errors of team::serve.
  Status welcome(const std::vector<DeviceSubset>& places);

  /// One entry per candidate; nothing where the time, or the memory, was over before its
  /// simulation.
  using Results = std::vector<std::optional<Result<Simulated>>>;
  Results run(const std::vector<const Candidate*>& round);
  /// The exception that ended the last round early; null where none did.
  const std::exception_ptr& fault() const { return fault_; }

 private:
  void work();
  std::unique_ptr<ClusterView> cluster();
  void keep(std::size_t i, Result<Simulated> found);

  const study::LoadedStudy& study_;
  const SearchOptions& options_;
  std::vector<const Candidate*> round_;
  Results results_;
  std::atomic<std::int64_t> done_{0};
  std::exception_ptr fault_;
  team::TaskQueue queue_;
  std::unique_ptr<net::Server> server_;
  // A cluster caches the routes that it finds: each thread takes a cluster of its own, and later
  // rounds reuse the cached routes.
  std::mutex mutex_;
  std::vector<std::unique_ptr<ClusterView>> clusters_;
};

// The messages about a simulation between the ranks of a search (sim/search/team.h).

/// \param place  its index among the places of the search.
team::Message task_of(std::int64_t place, const Strategy& strategy);
/// Reads the strategy and place of a task.
/// \return kInvalidInput where `task` is no such message, or its strategy does not read back as it
///     was written.
Result<Candidate> candidate_in(const team::Message& task, const study::LoadedStudy& study,
                               const std::vector<DeviceSubset>& places);

/// What is known of a candidate before its simulation; all results are zero.
Simulated not_yet_simulated(const Candidate& candidate);

/// The answer to a task: each number, exactly, or the message of the error.
team::Message answer_of(const Result<Simulated>& found);
/// The simulation of `candidate` that an answer holds. Nothing where `answer` is no such message.
std::optional<Result<Simulated>> simulated_in(const team::Message& answer,
                                              const Candidate& candidate);

}  // namespace foreshard::search
