/// \file
/// Rank 0 of a search, for fuzz_team: it lives below tests/sim because it sees what is internal to
/// the search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/net/identity.h"
#include "base/team/team.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/words.h"

#include "sim/search/internal/simulations.h"

namespace foreshard::fuzz::team_test {

// Tasks whose answers are results of searches.
class RankZero {
 public:
  RankZero() {
    std::vector<std::int64_t> tasks(100'000);
    std::iota(tasks.begin(), tasks.end(), std::int64_t{0});
    queue_.add(tasks);
    place_.pool.devices = {0};
    team::Tasks answered;
    answered.order = [](std::int64_t) { return search::task_of(0, Strategy{}); };
    answered.answer = [this](std::int64_t, const team::Message& words) -> team::Answer {
      const bool is_result = check(words);
      return {.state = is_result ? team::Answer::State::kDone : team::Answer::State::kInvalid};
    };
    const team::Team team{.identity = {.ranks = 2, .token = "token"},
                          .one_host = true,
                          .place = fuzz::Folder::path() / "rank-0",
                          .farewell = {}};
    auto server = team::serve(team, {.work = "work", .subject = "study", .remains = ""}, queue_,
                              std::move(answered));
    FORESHARD_CHECK(server.has_value());
    server_ = *std::move(server);
  }
  RankZero(const RankZero&) = delete;
  RankZero& operator=(const RankZero&) = delete;
  ~RankZero() { queue_.stop(); }

  std::uint16_t port() const { return server_->port(); }

  bool check(const team::Message& words) const {
    const search::Candidate candidate{.strategy = {}, .estimate = {}, .place = &place_};
    const auto found = search::simulated_in(words, candidate);
    if (!found) return false;
    const auto written = search::answer_of(*found);
    const auto back = search::simulated_in(written, candidate);
    FORESHARD_CHECK(back && search::answer_of(*back) == written);
    return true;
  }

 private:
  search::DeviceSubset place_{};
  team::TaskQueue queue_{[] { return false; }};
  std::unique_ptr<net::Server> server_;
};

}  // namespace foreshard::fuzz::team_test
