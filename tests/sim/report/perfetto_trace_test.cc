// Traces of simulated steps in Perfetto's format, decoded by its public schema.
#include <fmt/format.h>

#include "base/gzip/gzip.h"
#include "base/limits.h"
#include "tests/base/perfetto/decoded.h"
#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/report/bundle.h"
#include "sim/report/trace.h"
#include "sim/study/run.h"

namespace foreshard::report {
namespace {

study::StudyRun run_of(const study::StudyFiles& files) {
  return value_of(
      study::run_study(value_of(study::load_study(files, shipped_options())), {.timeline = true}));
}

// Four stages of four ranks, each with two chunks of the model.
constexpr const char* kPiped = R"(
cluster: {nodes: 2, node: dgx-a100-80gb, fabric: {kind: single-switch}}
model: {name: small, layers: 8, hidden: 1024, heads: 16, vocabulary: 32000, sequence: 512}
strategy: {tensor_parallel: 2, pipeline_parallel: 4, data_parallel: 2, schedule: interleaved,
           virtual_stages: 2, micro_batch: 1, global_batch: 16}
)";

study::StudyRun run_of_text(const std::string& text) {
  return run_of({.text = yaml::Input{"study.yaml", text}});
}

const study::StudyRun& piped() {
  static const study::StudyRun run = run_of_text(kPiped);
  return run;
}

std::string written(const study::StudyRun& run, const std::string& name) {
  const TemporaryFolder folder;
  const auto path = folder.path() / name;
  EXPECT_EQ(message_of(write_trace(path, run.prediction, run.program)), "accepted");
  return value_of(read_file(path, 1_GB));
}

const std::vector<perfetto::DecodedTrack>& tracks() {
  static const auto all = perfetto::decoded(written(piped(), "step.pftrace"));
  return all;
}

std::string process_of(std::size_t stage) {
  const sim::DeviceClass& one = piped().prediction.classes.at(stage);
  return fmt::format("{}: rank {} and {} like it", one.role, one.representative, one.count - 1);
}

TEST(PerfettoTraceOfStep, HasASliceForEachTaskWithinItsLayerAndPass) {
  std::map<std::pair<std::string, std::string>, std::size_t> expected;
  for (const sim::TimelineEntry& entry : piped().prediction.timeline)
    if (nanoseconds(entry.finish) > nanoseconds(entry.start))
      ++expected[{process_of(static_cast<std::size_t>(entry.device_class)),
                  entry.stream < 0
                      ? "host"
                      : piped().program.streams.at(static_cast<std::size_t>(entry.stream)).name}];
  std::map<std::pair<std::string, std::string>, std::size_t> found;
  for (const auto& track : tracks()) {
    for (const auto& slice : track.slices) {
      const bool is_task = slice.name.find(" / ") != std::string::npos;
      if (is_task && track.process != "critical path") ++found[{track.process, track.name}];
      if (is_task && track.name == "compute") {
        EXPECT_EQ(slice.depth, 2U) << slice.name;
      }
    }
  }
  EXPECT_EQ(found, expected);
}

// 16 samples are 8 micro-batches of each of the two replicas; a stage has two chunks of each.
TEST(PerfettoTraceOfStep, HasThePassesOfTheSchedule) {
  for (std::size_t stage = 0; stage < 4; ++stage) {
    std::map<std::string, std::multiset<std::string>> passes;
    for (const auto& slice : track_of(tracks(), process_of(stage), "compute").slices)
      if (slice.depth == 0) passes[slice.name].insert(slice.arguments.at("micro_batch"));
    for (const std::string pass : {"forward", "backward"}) {
      EXPECT_EQ(passes[pass].size(), 16U);
      for (int i = 0; i < 8; ++i) EXPECT_EQ(passes[pass].count(std::to_string(i)), 2U) << i;
    }
  }
}

// Activations go to the next stage, from the last one to the first; gradients go back.
TEST(PerfettoTraceOfStep, FlowsJoinTheSendOfAStageAndTheReceiveOfTheNext) {
  struct End {
    std::string process;
    std::string stream;
    perfetto::DecodedSlice slice;
  };
  std::map<std::string, std::vector<End>> flows;
  for (const auto& track : tracks())
    for (const auto& slice : track.slices)
      if (slice.flow) flows[*slice.flow].push_back({track.process, track.name, slice});
  std::size_t forward = 0;
  for (const auto& [id, ends] : flows) {
    ASSERT_EQ(ends.size(), 2U) << id;
    const auto& [send, receive] = std::pair(ends[0], ends[1]);  // in the order of the file
    EXPECT_TRUE(send.stream.starts_with("send_"));
    EXPECT_EQ(receive.stream, "receive_" + send.stream.substr(5));
    const bool is_forward = send.stream == "send_forward";
    forward += is_forward ? 1 : 0;
    for (std::size_t stage = 0; stage < 4; ++stage)
      if (send.process == process_of(stage)) {
        EXPECT_EQ(receive.process, process_of((stage + (is_forward ? 1 : 3)) % 4));
      }
    EXPECT_EQ(send.slice.start, receive.slice.start);
    EXPECT_EQ(send.slice.finish, receive.slice.finish);
    for (const std::string what : {"micro_batch", "bytes"})
      EXPECT_EQ(send.slice.arguments.at(what), receive.slice.arguments.at(what));
    // bf16 activations of a micro-batch of 512 tokens
    EXPECT_EQ(send.slice.arguments.at("bytes"), std::to_string(2 * 512 * 1024));
  }
  // Of the 8 chunks of the model, 7 hand each of the 8 micro-batches on, and back.
  EXPECT_EQ(forward, 7U * 8);
  EXPECT_EQ(flows.size(), 2 * 7U * 8);
}

TEST(PerfettoTraceOfStep, TellsHowCommunicationsAreCarriedOut) {
  std::set<std::string> algorithms;
  for (const auto& slice : track_of(tracks(), process_of(0), "tensor").slices) {
    EXPECT_GT(std::stoll(slice.arguments.at("bytes")), 0);
    EXPECT_THAT(slice.category, AnyOf("tp_comm", "pp_comm"));  // gradients of the tied embedding
    algorithms.insert(slice.arguments.at("algorithm"));
  }
  std::set<std::string> used;
  for (const sim::CollectiveUse& use : piped().prediction.collectives)
    if (use.what.find("over tensor") != std::string::npos) used.insert(use.algorithm);
  EXPECT_EQ(algorithms, used);
}

TEST(PerfettoTraceOfStep, CountsTheMemoryOfTheBundle) {
  const Bundle bundle = bundle_of(piped().prediction, piped().program);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const auto& curve = bundle.memory_over_time.at(stage).samples;
    const auto& memory = track_of(tracks(), process_of(stage), "memory");
    EXPECT_EQ(memory.unit, "UNIT_SIZE_BYTES");
    ASSERT_EQ(memory.counter.size(), curve.size());
    const auto& activations = track_of(tracks(), process_of(stage), "memory of activations");
    double peak = 0;
    for (std::size_t i = 0; i < curve.size(); ++i) {
      const auto& [time, value] = memory.counter[i];
      EXPECT_EQ(time, nanoseconds(curve[i].time));
      EXPECT_EQ(value, std::accumulate(curve[i].live.begin(), curve[i].live.end(), 0_B).in_base());
      EXPECT_EQ(activations.counter.at(i).second, curve[i].live[3].in_base());
      peak = std::max(peak, value);
    }
    EXPECT_EQ(peak, piped().prediction.classes.at(stage).memory.peak.in_base());
  }
}

// The mean of a counter over the step, times the bandwidth, is what the links carried.
TEST(PerfettoTraceOfStep, CountsTheUseOfLinks) {
  const sim::Prediction& prediction = piped().prediction;
  std::vector<const perfetto::DecodedTrack*> counters;
  for (const auto& track : tracks())
    if (track.process.starts_with("links")) counters.push_back(&track);
  ASSERT_EQ(counters.size(), prediction.link_groups.size());
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const sim::LinkGroupUse& group = prediction.link_groups[i];
    EXPECT_TRUE(counters[i]->name.starts_with(group.what + " (")) << counters[i]->name;
    double sum = 0;
    for (const auto& [time, percent] : counters[i]->counter) {
      EXPECT_GE(percent, 0);
      sum += percent / 100;
    }
    const double mean = sum / static_cast<double>(counters[i]->counter.size());
    EXPECT_NEAR(mean * (group.bandwidth * prediction.step / group.mean), 1, 1e-9) << group.what;
  }
}

TEST(PerfettoTraceOfStep, ShowsDisturbances) {
  const auto run = run_of_text(std::string(kPiped) + R"(disturbances:
  seed: 1
  stragglers:
    - {devices: node1/gpu5, speed: 0.9}
    - {devices: "node0/*", speed: 0.8, at: 1 ms, until: 2 ms}
)");
  std::size_t slices = 0;
  for (const auto& track : perfetto::decoded(written(run, "step.pftrace")))
    if (track.process == "disturbances") slices += track.slices.size();
  EXPECT_EQ(slices, run.prediction.disturbances->hits.size());
}

TEST(PerfettoTraceOfStep, IsCompressedByItsName) {
  for (const std::string name : {"step.pftrace", "step.json"}) {
    const std::string packed = written(piped(), name + ".gz");
    EXPECT_EQ(value_of(gunzip(packed, name, 1_GB)), written(piped(), name));
  }
}

// The bars of the format's design; the JSON of the same step takes 214 MB.
TEST(PerfettoTraceOfStep, IsSmallFor1024Devices) {
  const auto run = run_of({.study = "gpt3-175b-a100-1024"});
  const std::string trace = written(run, "step.pftrace");
  EXPECT_LE(trace.size(), 50e6);
  EXPECT_LE(gzip(trace).size(), 10e6);
  RecordProperty("bytes", std::to_string(trace.size()));
}

TEST(PerfettoTraceOfStep, WantsAKnownEnding) {
  const TemporaryFolder folder;
  for (const std::string name : {"step", "step.gz", "step.pf", "step.json.zip"}) {
    const auto path = folder.path() / name;
    EXPECT_THAT(message_of(write_trace(path, piped().prediction, piped().program)),
                AllOf(HasSubstr(path.string()), HasSubstr(".json or .pftrace")));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

}  // namespace
}  // namespace foreshard::report
