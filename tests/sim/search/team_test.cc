// Searches whose simulations are spread over ranks, here threads of one process.
#include "sim/search/team.h"

#include <atomic>
#include <sys/socket.h>
#include <thread>

#include "base/net/identity.h"
#include "base/net/socket.h"
#include "base/yaml/describe.h"
#include "tests/base/temporary_folder.h"
#include "tests/sim/search/written_study.h"
#include "tests/test.h"

#include "sim/search/device_subset.h"
#include "sim/search/internal/simulations.h"
#include "sim/search/output.h"
#include "sim/search/search.h"
#include "sim/study/run.h"

namespace foreshard::search::team_test {

constexpr const char* kSmall =
    "{name: small, layers: 4, hidden: 1024, heads: 16, vocabulary: 32000, sequence: 512}";
constexpr const char* kExperts =
    "{name: mixture, layers: 8, hidden: 2048, heads: 16, vocabulary: 32000, sequence: 1024, "
    "experts: 8, experts_per_token: 2, expert_ffn: 2816}";

// What the words of a task make of a strategy, with its place.
Result<Candidate> across(const study::LoadedStudy& study, const std::vector<DeviceSubset>& places,
                         std::size_t place, const Strategy& strategy) {
  return candidate_in(task_of(static_cast<std::int64_t>(place), strategy), study, places);
}

// Of studies of several kinds, every strategy that a search lists.
TEST(SearchTeam, ReadsEveryStrategyAsItWasWritten) {
  for (const study::LoadedStudy& study :
       {study_of(kMixed, kSmall, "{global_batch: 32, framework: megatron-lm, batch_shares: []}"),
        study_of("two-dgx-h100", kExperts,
                 "{global_batch: 64, framework: megatron-lm, capacity_factor: 1.1, quantization: "
                 "fp8-current, token_dispatcher: deepep, pass_times: [1, 1.1, 0.7]}"),
        study_of("two-dgx-h100", "llama2-13b",
                 "{global_batch: 32, framework: deepspeed-zero3, offload_optimizer: cpu}"),
        study_of("{name: box, node: dgx-a100-80gb}", kSmall, "{global_batch: 16}")}) {
    const auto cluster = value_of(cluster_of(study, study.pool.devices));
    const auto places = value_of(device_subsets_of(study, cluster));
    const auto space = enumerate(
        {.level = 3, .token_dispatcher = {TokenDispatcher::kAllToAll, TokenDispatcher::kDeepEp}},
        study.strategy, study.model, study.pool.size());
    ASSERT_FALSE(space.candidates.empty());
    const std::size_t step = std::max<std::size_t>(space.candidates.size() / 300, 1);
    for (std::size_t i = 0; i < space.candidates.size(); i += step) {
      Strategy strategy = space.candidates[i];
      if (i % 2 == 0) strategy.batch_shares = {3, 1};
      if (i % 3 == 0) strategy.recompute_parts.pop_back();
      const auto read = value_of(across(study, places, i % places.size(), strategy));
      EXPECT_EQ(read.place, &places[i % places.size()]);
      EXPECT_EQ(yaml::echo(read.strategy), yaml::echo(strategy));
      EXPECT_EQ(read.strategy.one_copy_in_fp8, strategy.one_copy_in_fp8);
    }
  }
}

TEST(SearchTeam, RefusesWhatIsNoTask) {
  const study::LoadedStudy study =
      study_of("{name: box, node: dgx-a100-80gb}", kSmall, "{global_batch: 16}");
  const std::vector<DeviceSubset> places{{.pool = study.pool, .use = {}}};
  const team::Message task = task_of(0, study.strategy);
  EXPECT_TRUE(candidate_in(task, study, places));
  for (const team::Message& words :
       {team::Message{}, team::Message{"simulate"}, team::Message{"point", "0", task[2]},
        team::Message{"simulate", "1", task[2]}, team::Message{"simulate", "-1", task[2]},
        team::Message{"simulate", "0x", task[2]},
        team::Message{"simulate", "0", "tensor_parallel: 2\n"},
        team::Message{"simulate", "0", task[2] + "\n"}})
    EXPECT_FALSE(candidate_in(words, study, places));
}

// By hand: numbers that no short decimal has, some that are not there, and no number at all.
TEST(SearchTeam, SendsEveryNumberExactly) {
  const study::LoadedStudy study =
      study_of("{name: box, node: dgx-a100-80gb}", kSmall, "{global_batch: 16}");
  const DeviceSubset place{.pool = study.pool, .use = {"node0"}};
  Strategy strategy = study.strategy;
  strategy.tensor_parallel = 2;
  const Candidate candidate{.strategy = strategy, .estimate = {}, .place = &place, .order = 7};
  Simulated one = not_yet_simulated(candidate);
  one.step = (0.1 + 0.2) * 1_s;
  one.low = 1_s / 3;
  one.high = Seconds::from_base(std::numeric_limits<double>::infinity());
  one.idle = 6;
  one.peak = Bytes::from_base(80e9 / 7);
  one.capacity = Bytes::from_base(std::numeric_limits<double>::denorm_min());
  one.fits = false;
  one.mfu = 2.0 / 3;
  one.tflops_per_device = 1e-300;
  one.breakdown.bubble = -1_s / 7;
  one.breakdown.compute = 1e22 * 1_s;
  one.energy = 1_J / 3;
  one.unmeasured = {.share = 1.0 / 3, .on = "X (from data sheets)", .remarks = {"a b", "", "c"}};
  const auto read = simulated_in(answer_of(one), candidate);
  ASSERT_TRUE(read && *read);
  const Simulated& back = **read;
  EXPECT_EQ(back.step, one.step);
  EXPECT_EQ(back.low, one.low);
  EXPECT_EQ(back.high, one.high);
  EXPECT_EQ(back.idle, 6);
  EXPECT_EQ(back.peak, one.peak);
  EXPECT_EQ(back.capacity, one.capacity);
  EXPECT_FALSE(back.fits);
  EXPECT_EQ(back.mfu, one.mfu);
  EXPECT_EQ(back.tflops_per_device, one.tflops_per_device);
  EXPECT_EQ(back.breakdown.bubble, one.breakdown.bubble);
  EXPECT_EQ(back.breakdown.compute, one.breakdown.compute);
  EXPECT_EQ(back.energy, one.energy);
  EXPECT_EQ(back.unmeasured, one.unmeasured);
  EXPECT_FALSE(back.usd || back.rent_of_used);
  EXPECT_EQ(back.use, std::vector<std::string>{"node0"});
  EXPECT_EQ(back.order, 7);
  EXPECT_EQ(back.devices, (std::vector<std::int32_t>{0, 1}));

  const Result<Simulated> fault = Error{Error::Code::kInfeasible, "no route, \"really\"\n"};
  const auto same = simulated_in(answer_of(fault), candidate);
  ASSERT_TRUE(same && !*same);
  EXPECT_EQ(same->error().message, fault.error().message);
  team::Message short_one = answer_of(one);
  short_one.pop_back();
  for (const team::Message& words :
       {short_one, team::Message{}, team::Message{"over"}, team::Message{"found", "1"}})
    EXPECT_FALSE(simulated_in(words, candidate));
  team::Message no_number = answer_of(one);
  no_number[1] = "1 s";
  EXPECT_FALSE(simulated_in(no_number, candidate));
}

// A search that simulates some tens of strategies, with a price for money.
class TwoNodes : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const study::LoadedStudy study_ = study_of(
      "{name: pair, node: dgx-a100-80gb, nodes: 2, fabric: {kind: single-switch}, rent: "
      "2 USD/h}",
      kSmall, "{global_batch: 32, framework: megatron-lm}");
  SearchOptions options_{.simulate = 12, .certify = 8, .front = 4, .threads = 1, .version = "v"};
  team::Team zero_{.identity = {.rank = 0, .ranks = 2, .token = "t"},
                   .one_host = true,
                   .place = folder_.path() / "found.json.rank-0",
                   .connect_timeout = 20_s,
                   .farewell = 0.5_s,
                   .grace = 0.2_s};
  std::string json(const SearchResult& result) const { return search_json(study_, result, 50); }
  team::Team rank(int number) const {
    team::Team team = zero_;
    team.identity.rank = number;
    return team;
  }

  // Speaks for rank 1, and goes no further than to take its first task.
  net::Descriptor with_a_task() const {
    std::optional<net::RankZero> place;
    while (!(place = net::rank_zero_in(zero_.place)))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    auto socket = value_of(net::connect_to(place->address(), place->port, 5_s));
    team::send(socket.get(), {"hello", "1", job_of(study_, "v").work, "t"});
    EXPECT_EQ(team::receive(socket.get()), team::Message{"welcome"});
    team::send(socket.get(), {"next"});
    const auto task = team::receive(socket.get());
    EXPECT_TRUE(task && task->size() == 3 && task->front() == "simulate");
    return socket;
  }
};

// One rank helps, one is lost with a task, one has another version and is refused.
TEST_F(TwoNodes, GiveTheBytesOfOneProcess) {
  const auto serial = value_of(run_search(study_, options_));
  ASSERT_GT(serial.simulated.size(), 12U);
  zero_.identity.ranks = 4;
  std::vector<Status> ended(2);
  std::atomic<bool> lost = false;
  std::jthread losing([&] {
    const net::Descriptor socket = with_a_task();
    lost = true;
  });
  // After that: it would take all tasks of the first round from a rank that comes late.
  std::jthread helping([&] {
    while (!lost) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ended[0] = help(study_, rank(2), "v", 2);
  });
  std::jthread other([&] { ended[1] = help(study_, rank(3), "other", 2); });
  // Rank 0 itself does no more than one until the task is lost.
  const auto own = std::this_thread::get_id();
  std::atomic<int> by_others = 0;
  options_.progress = [&](std::int64_t, std::int64_t) {
    if (std::this_thread::get_id() != own) ++by_others;
    while (std::this_thread::get_id() == own && !(lost && by_others > 0))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  options_.team = &zero_;
  const auto result = run_search(study_, options_);
  helping.join();
  other.join();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(json(*result), json(serial));
  EXPECT_GT(by_others, 0);
  EXPECT_TRUE(ended[0].ok());
  ASSERT_FALSE(ended[1].ok());
  EXPECT_THAT(ended[1].error().message,
              HasSubstr("rank 0 refuses rank 3: its study, its files or its version differ"));
  EXPECT_TRUE(help(study_, rank(1), "v", 1).ok());  // It comes when all is over.
}

// Rank 0 finds a fault before it has anything simulated: its answer, not that of others.
TEST_F(TwoNodes, LeaveFaultsToRankZero) {
  const study::LoadedStudy study =
      study_of("{name: box, node: dgx-a100-80gb}", kSmall, "{mode: forward, global_batch: 16}");
  Status ended = Error{Error::Code::kIo, "it has not ended"};
  zero_.farewell = 20_s;
  std::jthread helper([&] { ended = help(study, rank(1), "v", 1); });
  options_.team = &zero_;
  const auto result = run_search(study, options_);
  helper.join();
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("a search compares steps of training"));
  EXPECT_TRUE(ended.ok());
}

// A rank that takes a task and says nothing more: time is over, and so is its connection.
TEST_F(TwoNodes, GiveUpARankThatHangs) {
  std::atomic<bool> has_task = false;
  std::jthread hung([&] {
    const net::Descriptor socket = with_a_task();
    has_task = true;
    EXPECT_FALSE(team::receive(socket.get()));
  });
  std::atomic<int> done = 0;
  constexpr int kOthers = 3;  // of the first round
  options_.progress = [&](std::int64_t, std::int64_t) {
    while (!has_task) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++done;
  };
  options_.stop = [&] { return done >= kOthers; };
  options_.team = &zero_;
  const auto result = value_of(run_search(study_, options_));
  EXPECT_TRUE(result.partial);
  EXPECT_EQ(std::ssize(result.simulated), kOthers);
}

// Rank 0 goes after it has welcomed the rank, without a word that all is over.
TEST_F(TwoNodes, TellThatRankZeroIsLost) {
  auto listening = value_of(net::listen_on(net::kLoopback, 0));
  ASSERT_TRUE(net::write_rank_zero(zero_.place, {.host = "", .port = listening.port}).ok());
  Status ended;
  {
    std::jthread helper([&] { ended = help(study_, rank(1), "v", 1); });
    net::Descriptor socket;
    while (!socket.valid())
      socket = net::Descriptor(::accept(listening.socket.get(), nullptr, nullptr));
    EXPECT_TRUE(team::receive(socket.get()));
    team::send(socket.get(), {"welcome"});
    EXPECT_TRUE(team::receive(socket.get()));
  }
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Error::Code::kIo);
  EXPECT_EQ(ended.error().message, "rank 1: rank 0 is lost; search again");
}

}  // namespace foreshard::search::team_test
