// Sweeps that run, are interrupted, and go on.
#include "sim/sweep/run.h"

#include <atomic>
#include <thread>

#include "base/file.h"
#include "base/net/identity.h"
#include "base/net/socket.h"
#include "base/team/team.h"
#include "tests/sim/sweep/sweeps.h"
#include "tests/test.h"

#include "sim/report/predict.h"
#include "sim/search/search.h"
#include "sim/sweep/output.h"

namespace foreshard::sweep::run_test {

constexpr const char* kAxes =
    "axes:\n"
    "  - {key: strategy.micro_batch, values: [1, 2, 4]}\n"
    "  - {key: strategy.tensor_parallel, values: [1, 2, 3]}\n"
    "set: {strategy.data_parallel: 4}\n"
    "train: 1B tokens\n";

RunResult run(const Setup& setup, const RunOptions& options = {}) {
  return value_of(run_sweep(setup, options));
}
Store opened(const std::filesystem::path& file, const sweep::Setup& setup,
             std::vector<std::string>& remarks) {
  return value_of(Store::open(file, question_of(setup.sweep), *common_work(setup), remarks));
}
std::string json(const Results& results) {
  return sweep_json(results, ranking_of(results));
}

// Tensor ranks of 3 do not divide the heads; the others are what `simulate` says.
TEST(RunSweep, SaysWhatSimulateSays) {
  const TemporaryFolder folder;
  const sweep::Setup setup = setup_of(folder, kAxes);
  const RunResult result = run(setup);
  EXPECT_EQ(result.computed, 9);
  for (std::int64_t i = 0; i < 9; ++i) {
    const Outcome& outcome = *result.results.outcomes[static_cast<std::size_t>(i)];
    const auto study = study::load_study(
        {.study = folder.path() / "base.yaml"},
        {.catalogue = setup.catalogue, .overrides = overrides_of(setup.sweep, i)});
    if (i % 3 == 2) {
      ASSERT_FALSE(study);
      EXPECT_EQ(outcome.status, PointStatus::kInvalid);
      EXPECT_THAT(outcome.why, HasSubstr("sweep.yaml: tensor_parallel 3 "
                                         "(strategy.tensor_parallel: 3): error: "));
      EXPECT_THAT(outcome.why, Not(HasSubstr("--set")));
      continue;
    }
    const auto report = value_of(report::predict(*study, {}));
    ASSERT_TRUE(outcome.figures);
    EXPECT_EQ(outcome.figures->step, report.prediction.step);
    EXPECT_EQ(outcome.figures->low, report.prediction.low);
    EXPECT_EQ(outcome.figures->usd, report.prediction.expense.rent);
    EXPECT_EQ(outcome.figures->training_steps, report.prediction.training->steps);
  }
}

// The bill is the rent and the electricity.
TEST(RunSweep, CountsElectricityAndItsCarbon) {
  const TemporaryFolder folder;
  const auto figures = [&](const std::string& set) {
    const sweep::Setup setup =
        setup_of(folder, "axes: [{key: strategy.micro_batch, values: [1]}]\nset: {" + set + "}\n");
    return *run(setup).results.outcomes[0]->figures;
  };
  const StepFigures without = figures("");
  const StepFigures with =
      figures("cluster.electricity: 0.36 USD/kWh, cluster.carbon: 0.36 kg/kWh");
  EXPECT_FALSE(without.carbon);
  EXPECT_NEAR((*with.usd - *without.usd) / 1_USD, *with.energy / 1_J * 1e-7, 1e-12);
  EXPECT_NEAR(*with.carbon / 1_kg, *with.energy / 1_J * 1e-7, 1e-12);
}

// As `simulate --sensitivity` of each point; a step that is disturbed has none.
TEST(RunSweep, SaysWhatFasterPartsBuy) {
  const TemporaryFolder folder;
  const std::string axes =
      "axes:\n"
      "  - {key: strategy.micro_batch, values: [1, 2]}\n"
      "  - name: devices\n"
      "    choices:\n"
      "      - {name: well, set: {}}\n"
      "      - name: slow\n"
      "        set: {disturbances: {stragglers: [{devices: node0/gpu1, speed: 0.9}]}}\n";
  const sweep::Setup setup = setup_of(folder, axes + "sensitivities: true\n");
  const Results results = run(setup).results;
  for (const std::int64_t point : {0, 2}) {
    const auto study = study::load_study(
        {.study = folder.path() / "base.yaml"},
        {.catalogue = setup.catalogue, .overrides = overrides_of(setup.sweep, point)});
    const auto report = value_of(report::predict(*study, {}, {.sensitivities = true}));
    const StepFigures& step = *results.outcomes[static_cast<std::size_t>(point)]->figures;
    ASSERT_EQ(step.worth->size(), report.sensitivities->of.size());
    double sum = 0;
    for (std::size_t i = 0; i < step.worth->size(); ++i) {
      const sim::Sensitivity& expected = report.sensitivities->of[i];
      const std::string& device = expected.speed.device;
      EXPECT_EQ((*step.worth)[i], (Worth{std::string(key_of(expected.speed.kind)),
                                         device.empty() ? std::nullopt : std::optional(device),
                                         expected.elasticity, expected.step_at_more}));
      sum += expected.elasticity;
    }
    EXPECT_NEAR(sum, -1, 1e-6);
    Seconds total;
    for (const auto& [part, time] : step.terms) total += time;
    EXPECT_NEAR(total / step.step, 1, 1e-9);
    EXPECT_EQ(results.outcomes[static_cast<std::size_t>(point) + 1]->status, PointStatus::kInvalid);
    EXPECT_THAT(results.outcomes[static_cast<std::size_t>(point) + 1]->why,
                HasSubstr("leave out disturbances here, or sensitivities"));
  }
  const Ranking ranking = ranking_of(results);
  EXPECT_THAT(sweep_text(results, ranking, 5), HasSubstr("What 10 % more takes off the step"));
  EXPECT_THAT(sweep_csv(results, ranking), HasSubstr("elasticity of products A100-SXM-80GB,"));
  // Points that tell them are other ones than those that do not.
  const sweep::Setup without = setup_of(folder, axes);
  EXPECT_NE(load_point(without, 0)->key, load_point(setup, 0)->key);
  EXPECT_FALSE(run(without).results.outcomes[0]->figures->worth);
}

TEST(RunSweep, SaysWhoseEnergyIsWithoutHosts) {
  const TemporaryFolder folder;
  const sweep::Setup setup =
      setup_of(folder, "axes: [{key: cluster.node, values: [dgx-a100-80gb, mi300x-8gpu]}]\n");
  const Results results = run(setup).results;
  ASSERT_TRUE(results.outcomes[1]->figures) << results.outcomes[1]->why;
  EXPECT_TRUE(results.outcomes[0]->figures->without_host_power.empty());
  EXPECT_FALSE(results.outcomes[1]->figures->without_host_power.empty());
  EXPECT_THAT(sweep_text(results, ranking_of(results), 5),
              HasSubstr("energy: hosts of MI300X are not counted, those of others are"));
}

TEST(RunSweep, RefusesWhatNeedsMoreMemoryThanThereIs) {
  const TemporaryFolder folder;
  sweep::Setup setup = setup_of(folder, "axes: [{key: strategy.micro_batch, values: [1, 2]}]\n");
  setup.max_memory = 1_KiB;
  const std::string refused = message_of(run_sweep(setup, {}));
  EXPECT_THAT(refused, HasSubstr("that a point may take here"));
  EXPECT_THAT(refused, HasSubstr("--threads"));
  // A file does not hold it against a larger machine.
  std::vector<std::string> remarks;
  auto store = opened(folder.path() / "r.db", setup, remarks);
  EXPECT_FALSE(run_sweep(setup, {.store = &store}));
  setup.max_memory = 1_GiB;
  EXPECT_EQ(run(setup, {.store = &store}).computed, 2);
}

// From a folder, and from the one above it: the same keys and messages.
TEST(RunSweep, DoesNotDependOnWhereItIsRunFrom) {
  const TemporaryFolder folder;
  folder.write("base.yaml", kStudy);
  folder.write("my.yaml", "extends: dgx-h100\n");
  const auto file = folder.write(
      "sweep.yaml",
      "study: base.yaml\n"
      "axes: [{key: cluster.node, values: [my.yaml, none.yaml, {extends: my.yaml}]}]\n");
  const std::vector<std::filesystem::path> catalogue{FORESHARD_SOURCE_DIR "/configs"};
  const auto keys = [&](const std::filesystem::path& from) {
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(from);
    const auto path = std::filesystem::relative(file, from);
    auto sweep = load_sweep(path.string(), {.catalogue = catalogue});
    const sweep::Setup setup{.sweep = *std::move(sweep), .catalogue = catalogue, .version = "test"};
    std::string text = *common_work(setup);
    for (std::int64_t i = 0; i < 3; ++i) text += "\n" + load_point(setup, i)->key;
    text += json(run(setup).results);
    std::filesystem::current_path(before);
    return text;
  };
  const std::string here = keys(folder.path());
  EXPECT_EQ(keys(folder.path().parent_path()), here);
  EXPECT_THAT(here, HasSubstr("there is no file 'none.yaml'"));
  EXPECT_THAT(here, HasSubstr("sweep.yaml: node none.yaml (cluster.node: none.yaml): error"));
}

TEST(RunSweep, SaysWhatIsNotDone) {
  const TemporaryFolder folder;
  const sweep::Setup setup = setup_of(
      folder, std::string(kAxes) + "goal: {within: 1000 d, budget: 1e9 USD, minimise: usd}\n");
  std::atomic<int> done = 0;
  const RunResult part =
      run(setup, {.out_of_time = [&] { return done >= 2; }, .progress = [&] { ++done; }});
  const std::string text = sweep_text(part.results, ranking_of(part.results), 20);
  EXPECT_THAT(text, testing::ContainsRegex("micro_batch 4 .* not done yet"));
  EXPECT_THAT(text, HasSubstr("2 points meet it so far. The best of those that are done: "));
  EXPECT_THAT(text, Not(HasSubstr("The answer")));
  EXPECT_THAT(sweep_text(part.results, ranking_of(part.results), 1), HasSubstr("more (--top)"));
}

TEST(RunSweep, DoesNotDependOnThreads) {
  const TemporaryFolder folder;
  const sweep::Setup setup = setup_of(folder, kAxes);
  const std::string one = json(run(setup).results);
  EXPECT_EQ(json(run(setup, {.threads = 5}).results), one);
}

TEST(RunSweep, FindsWhatTheSearchFinds) {
  const TemporaryFolder folder;
  const sweep::Setup setup = setup_of(folder,
                                      "axes: [{key: strategy.global_batch, values: [16, 32]}]\n"
                                      "search: {space: {level: 1}, simulate: 3, certify: 0}\n");
  const RunResult result = run(setup);
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto study = study::load_study(
        {.study = folder.path() / "base.yaml", .sizes_matter = false},
        {.catalogue = setup.catalogue, .overrides = overrides_of(setup.sweep, i)});
    search::SearchOptions options;
    options.space.level = 1;
    options.simulate = 3;
    options.certify = 0;
    const auto found = search::run_search(*study, options);
    const Outcome& outcome = *result.results.outcomes[static_cast<std::size_t>(i)];
    ASSERT_TRUE(outcome.figures) << outcome.why;
    EXPECT_EQ(outcome.figures->step, found->simulated.front().step);
    EXPECT_NEAR(outcome.figures->peak / 1_B, found->simulated.front().peak / 1_B, 1);
    EXPECT_FALSE(outcome.settings.empty());
  }
}

TEST(RunSweep, TellsTheClosestWhereNothingFits) {
  const TemporaryFolder folder;
  const std::string huge = "set: {model.hidden: 32768, model.layers: 96}\n";
  for (const std::string search :
       {"", "search: {space: {level: 1, offload: false}, simulate: 1, certify: 0}\n"}) {
    std::string axes = huge + "axes: [{key: strategy.global_batch, values: [16, 32]}]\n";
    axes += search;
    const sweep::Setup setup = setup_of(folder, axes);
    const Results results = run(setup).results;
    for (const auto& outcome : results.outcomes) {
      EXPECT_EQ(outcome->status, PointStatus::kInfeasible);
      EXPECT_TRUE(outcome->missing);
      EXPECT_THAT(outcome->why, HasSubstr("more than the"));
    }
    EXPECT_THAT(sweep_text(results, ranking_of(results), 5), HasSubstr("The closest: "));
  }
}

TEST(RunSweep, GivesTheFaultOfASweepWithoutAStudyInIt) {
  const TemporaryFolder folder;
  const sweep::Setup setup = setup_of(folder, "axes: [{key: strategy.tensor, values: [1, 2]}]\n");
  const std::string result = message_of(run_sweep(setup, {}));
  EXPECT_THAT(result, HasSubstr("unknown key 'tensor'"));
  EXPECT_THAT(result, HasSubstr("(point 0 of " + setup.sweep.file));
  EXPECT_THAT(result, HasSubstr("none of 2 points makes a study"));
}

// Three questions, each answered by simulating every point by itself.
TEST(RunSweep, AnswersAGoalAsAnExhaustiveEnumerationDoes) {
  struct Case {
    std::string goal;
    double days;
    double usd;
  };
  for (const Case& one :
       {Case{"{within: 32 s, minimise: usd}", 32.0 / 86400, 1e9},
        Case{"{budget: 0.1 USD, minimise: time}", 1e9, 0.1},
        Case{"{within: 68 s, budget: 0.15 USD, minimise: kwh}", 68.0 / 86400, 0.15}}) {
    const TemporaryFolder folder;
    const sweep::Setup setup =
        setup_of(folder,
                 "set: {strategy.framework: {extends: megatron-lm, step_launches: 0}}\naxes:\n"
                 "  - {key: strategy.micro_batch, values: [1, 2, 4]}\n"
                 "  - {key: cluster.rent, values: [1 USD/h, 4 USD/h]}\n"
                 "  - {key: strategy.recompute, values: [none, full]}\n"
                 "train: 10M tokens\ngoal: " +
                     one.goal + "\n");
    const Results results = run(setup).results;
    const Ranking ranking = ranking_of(results);
    std::optional<std::size_t> best;
    std::tuple<double, double> least;
    for (std::int64_t i = 0; i < 12; ++i) {
      const auto study = study::load_study(
          {.study = folder.path() / "base.yaml"},
          {.catalogue = setup.catalogue, .overrides = overrides_of(setup.sweep, i)});
      const auto prediction = report::predict(*study, {})->prediction;
      const double steps = prediction.training->steps;
      const double days = prediction.step * steps / (24_h);
      const double usd = *prediction.expense.rent * steps / 1_USD;
      const double joules = *prediction.expense.energy * steps / 1_J;
      if (days > one.days || usd > one.usd) continue;
      const Measure by = results.question.rank;
      const std::tuple value(by == Measure::kUsd    ? usd
                             : by == Measure::kTime ? days
                                                    : joules,
                             days);
      if (best && least <= value) continue;
      best = static_cast<std::size_t>(i);
      least = value;
    }
    ASSERT_EQ(ranking.verdict->met.empty(), !best) << one.goal;
    if (best) {
      EXPECT_EQ(ranking.verdict->met.front(), *best) << one.goal;
    }
    // Each limit leaves out some points, and not all.
    EXPECT_FALSE(ranking.verdict->met.empty()) << one.goal;
    EXPECT_FALSE(ranking.verdict->missed.empty()) << one.goal;
  }
}

TEST(Store, KeepsWhatIsDoneAndComputesNothingTwice) {
  const TemporaryFolder folder;
  const sweep::Setup setup = setup_of(folder, kAxes);
  const auto file = folder.path() / "results.db";
  const std::string serial = json(run(setup).results);
  std::vector<std::string> remarks;
  {
    auto store = opened(file, setup, remarks);
    std::atomic<int> done = 0;
    const RunResult part = run(
        setup,
        {.store = &store, .out_of_time = [&] { return done >= 4; }, .progress = [&] { ++done; }});
    EXPECT_TRUE(part.partial);
    EXPECT_EQ(part.computed, 4);
  }
  EXPECT_EQ(value_of(read_results(file, remarks)).done(), 4);
  {
    auto store = opened(file, setup, remarks);
    const RunResult rest = run(setup, {.store = &store});
    EXPECT_EQ(rest.known, 4);
    EXPECT_EQ(rest.computed, 5);
  }
  EXPECT_EQ(json(value_of(read_results(file, remarks))), serial);
  EXPECT_TRUE(remarks.empty());
  // What is there stays there, however little a further run gets to.
  {
    auto store = opened(file, setup, remarks);
    const RunResult none = run(setup, {.store = &store, .out_of_time = [] { return true; }});
    EXPECT_TRUE(none.partial);
    EXPECT_EQ(json(none.results), serial);
  }
  EXPECT_EQ(json(*read_results(file, remarks)), serial);
  // Another version computes all of it again.
  sweep::Setup other = setup;
  other.version = "other";
  auto store = opened(file, setup, remarks);
  EXPECT_EQ(run(other, {.store = &store}).known, 0);
}

TEST(Store, OfShardsIsMergedToTheSameBytes) {
  const TemporaryFolder folder;
  const sweep::Setup setup = setup_of(folder, kAxes);
  const std::string serial = json(run(setup).results);
  std::vector<std::string> remarks;
  std::vector<std::filesystem::path> files;
  for (std::int64_t part = 1; part <= 3; ++part) {
    files.push_back(folder.path() / (std::to_string(part) + ".db"));
    auto store = opened(files.back(), setup, remarks);
    EXPECT_EQ(run(setup, {.shard = {part, 3}, .store = &store}).computed, 3);
  }
  const auto merged = folder.path() / "all.db";
  ASSERT_EQ(message_of(merge_results(files, merged, remarks)), "accepted");
  EXPECT_EQ(json(*read_results(merged, remarks)), serial);
  EXPECT_THAT(merge_results(files, merged, remarks).error().message, HasSubstr("is there already"));

  const sweep::Setup other = setup_of(folder, "axes: [{key: strategy.micro_batch, values: [1]}]\n");
  const auto foreign = folder.path() / "other.db";
  opened(foreign, other, remarks);
  EXPECT_THAT(merge_results({files[0], foreign}, folder.path() / "no.db", remarks).error().message,
              HasSubstr("different sweeps"));
}

TEST(Store, LeavesAloneWhatIsNoDatabase) {
  const TemporaryFolder folder;
  const sweep::Setup setup = setup_of(folder, kAxes);
  const auto fault = [&](const std::filesystem::path& place) {
    std::vector<std::string> remarks;
    const auto store = Store::open(place, question_of(setup.sweep), "", remarks);
    EXPECT_TRUE(remarks.empty());
    return message_of(store, "opened");
  };
  EXPECT_THAT(fault(folder.path() / "base.yaml"), HasSubstr("is left as it is"));
  EXPECT_EQ(*foreshard::read_file(folder.path() / "base.yaml", 1_MiB), kStudy);
  EXPECT_THAT(fault(folder.path()), HasSubstr("is a folder; name a file in it"));
  EXPECT_THAT(fault(folder.path() / "none" / "r.db"), HasSubstr("make it first"));
}

TEST(Store, CountsPointsThatRepeatOthersApart) {
  const TemporaryFolder folder;
  const sweep::Setup setup =
      setup_of(folder,
               "axes: [{name: x, choices: [{name: a, set: {strategy.micro_batch: 1}},"
               " {name: b, set: {strategy.micro_batch: 1}}]}]\n");
  std::vector<std::string> remarks;
  auto store = opened(folder.path() / "r.db", setup, remarks);
  const RunResult result = run(setup, {.store = &store});
  EXPECT_EQ(result.computed, 1);
  EXPECT_EQ(result.repeated, 1);
  EXPECT_EQ(result.known, 0);
  EXPECT_FALSE(result.partial);
}

TEST(Store, IsOneProcessesAtATime) {
  const TemporaryFolder folder;
  const sweep::Setup setup = setup_of(folder, kAxes);
  std::vector<std::string> remarks;
  const auto first = Store::open(folder.path() / "r.db", question_of(setup.sweep), "", remarks);
  EXPECT_THAT(error_of(Store::open(folder.path() / "r.db", question_of(setup.sweep), "", remarks)),
              Fails(Error::Code::kIo, HasSubstr("in use by another run")));
  EXPECT_TRUE(remarks.empty());
}

// Two ranks as threads of this process; a third one has another sweep, and is refused.
TEST(Team, GivesTheBytesOfOneProcess) {
  const TemporaryFolder folder;
  const sweep::Setup setup = setup_of(folder, kAxes);
  const std::string serial = json(run(setup).results);
  Team zero{.identity = {.rank = 0, .ranks = 4, .token = "t"},
            .one_host = true,
            .place = folder.path() / "r.rank-0"};
  std::vector<std::jthread> helpers;
  std::vector<Status> ended(3);
  for (int rank = 1; rank <= 3; ++rank) {
    helpers.emplace_back([&, rank] {
      Team team = zero;
      team.identity.rank = rank;
      team.connect_timeout = 5_s;
      sweep::Setup own = setup;
      if (rank == 3) own.version = "other";
      ended[static_cast<std::size_t>(rank - 1)] = help(own, team, 1);
    });
  }
  zero.farewell = 2_s;
  const RunResult result = run(setup, {.team = &zero});
  helpers.clear();
  EXPECT_EQ(json(result.results), serial);
  EXPECT_TRUE(ended[0].ok() && ended[1].ok());
  ASSERT_FALSE(ended[2].ok());
  EXPECT_THAT(ended[2].error().message, HasSubstr("its sweep, its files or its version differ"));
  // Whoever comes later learns that all is over, and nobody of another job does.
  Team late = zero;
  late.identity.rank = 1;
  late.connect_timeout = 0.2_s;
  EXPECT_TRUE(help(setup, late, 1).ok());
  late.identity.token = "other";
  EXPECT_FALSE(help(setup, late, 1).ok());
  remove_rendezvous(zero);
  EXPECT_FALSE(std::filesystem::exists(zero.place));
}

// A rank that takes a point and says nothing more: time is over, and so is its connection.
TEST(Team, GivesUpARankThatHangs) {
  const TemporaryFolder folder;
  const sweep::Setup setup = setup_of(folder, kAxes);
  const Team zero{.identity = {.rank = 0, .ranks = 2, .token = "t"},
                  .one_host = true,
                  .place = folder.path() / "r.rank-0",
                  .grace = 0.2_s};
  const std::string work = *common_work(setup);
  std::atomic<bool> has_point = false;
  std::jthread hung([&] {
    std::optional<net::RankZero> place;
    while (!(place = net::rank_zero_in(zero.place)))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto socket = net::connect_to(place->address(), place->port, 5_s);
    team::send(socket->get(), {"hello", "1", work, "t"});
    EXPECT_EQ(team::receive(socket->get()), team::Message{"welcome"});
    team::send(socket->get(), {"next"});
    EXPECT_TRUE(team::receive(socket->get()));
    has_point = true;
    EXPECT_FALSE(team::receive(socket->get()));
  });
  std::atomic<int> done = 0;
  const RunResult result =
      run(setup, {.out_of_time = [&] { return done == 8; },
                  .progress =
                      [&] {
                        while (!has_point)
                          std::this_thread::sleep_for(std::chrono::milliseconds(1));
                        ++done;
                      },
                  .team = &zero});
  EXPECT_TRUE(result.partial);
  EXPECT_EQ(result.computed, 8);
}

TEST(Shard, IsReadOrRefused) {
  EXPECT_EQ(parse_shard("2/8")->part, 2);
  for (const char* text : {"", "0/2", "3/2", "1", "1/", "/2", "a/b", "1/2x", "-1/2"})
    EXPECT_THAT(parse_shard(text).error().message, HasSubstr("is no part of a sweep")) << text;
}

}  // namespace foreshard::sweep::run_test
