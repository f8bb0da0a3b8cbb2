// `foreshard reshard` between two strategies and on checkpoints, as a shell sees it.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/strategies/checkpoint/synthetic.h"
#include "tests/strategies/graph/written_model.h"
#include "tests/test.h"

#include "strategies/checkpoint/convert.h"
#include "strategies/parallelism/parameters.h"

namespace foreshard::cli::reshard_phases_test {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kModel = R"(name: tiny
layers: 4
hidden: 64
heads: 8
vocabulary: 1000
sequence: 32
source: made up for this test
)";

Model tiny() {
  return written_model(
      "name: tiny, layers: 4, hidden: 64, heads: 8, vocabulary: 1000, sequence: 32");
}

std::vector<checkpoint::TensorEntry> entries(std::int64_t tp, std::int64_t pp) {
  Strategy strategy;
  strategy.tensor_parallel = tp;
  strategy.pipeline_parallel = pp;
  strategy.global_batch = 8;
  std::vector<checkpoint::TensorEntry> list;
  for (const PlacedTensor& tensor : parameters_of(tiny(), strategy)) {
    list.push_back({.name = tensor.name,
                    .type = checkpoint::stored_as(tensor.dtype),
                    .shape = tensor.shape,
                    .layout = tensor.layout});
    if (tensor.unpadded != tensor.shape) list.back().unpadded = tensor.unpadded;
  }
  return list;
}

class ReshardPhases : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("model.yaml", kModel);
    folder_.write("tp8.yaml", "{tensor_parallel: 8, global_batch: 8}\n");
    folder_.write("tp8dp2.yaml", "{tensor_parallel: 8, data_parallel: 2, global_batch: 8}\n");
    folder_.write("tp4pp2.yaml", "{tensor_parallel: 4, pipeline_parallel: 2, global_batch: 8}\n");
    folder_.write("forward.yaml", "{mode: forward, tensor_parallel: 2, global_batch: 8}\n");
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  Outcome between(const std::string& from, const std::string& to, const std::string& more) const {
    return foreshard(fmt::format(
        "reshard --from-strategy {} --to-strategy {} --model {} --cluster two-dgx-h100 {}",
        path(from), path(to), path("model.yaml"), more));
  }
  // A checkpoint by 8-way tensor parallelism, to `to`.
  Outcome convert(const std::string& arguments) {
    if (!fs::exists(path("from"))) {
      EXPECT_TRUE(checkpoint::write_synthetic(path("from"), checkpoint::FileFormat::kSafetensors,
                                              entries(8, 1), 3)
                      .ok());
    }
    return foreshard(
        fmt::format("reshard --checkpoint {} --out {} {}", path("from"), path("to"), arguments));
  }
  std::string to_strategy(const std::string& name) const {
    return fmt::format("--to-strategy {} --model {}", path(name), path("model.yaml"));
  }
  std::string contents() const {
    const auto source = checkpoint::open_source(path("to"));
    if (!source) return source.error().message;
    return message_of(checkpoint::check_synthetic(*source, 3), "right");
  }

  TemporaryFolder folder_;
};

TEST_F(ReshardPhases, StrategiesThatAgreeMoveNothing) {
  const Outcome same = between("tp8.yaml", "tp8.yaml", "");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("nothing is sent"));
}

TEST_F(ReshardPhases, TellsWhatMovesBetweenStrategies) {
  const Outcome moved = between("tp8.yaml", "tp4pp2.yaml", "--format json");
  ASSERT_EQ(moved.code, 0) << moved.err;
  const json told = json::parse(moved.out);
  EXPECT_EQ(told["schema"], "foreshard.reshard_strategy/1");
  EXPECT_GT(told["simulated_s"], 0);
  double sent = 0;
  for (const json& device : told["devices"]) {
    sent += device["sent_bytes"].get<double>();
    EXPECT_GE(device["after_bytes"],
              device["stays_bytes"].get<double>() + device["received_bytes"].get<double>());
  }
  EXPECT_EQ(told["bytes_moved"], sent);
  EXPECT_EQ(told["devices"].size(), 8);
  EXPECT_FALSE(told["links"].empty());
}

TEST_F(ReshardPhases, TakesYamlInBraces) {
  const auto moved = [&](const std::string& from, const std::string& to) {
    const Outcome outcome = foreshard(
        fmt::format("reshard --from-strategy '{}' --to-strategy '{}' --model {} --cluster "
                    "'{{nodes: 2, node: dgx-h100, fabric: {{kind: single-switch}}}}' --format csv",
                    from, to, path("model.yaml")));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(moved("{tensor_parallel: 8, global_batch: 8}",
                  "{tensor_parallel: 4, pipeline_parallel: 2, global_batch: 8}"),
            moved(path("tp8.yaml"), path("tp4pp2.yaml")));
}

TEST_F(ReshardPhases, SetReachesTheModelAndBothClusters) {
  const auto tensors = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out)["tensors"].get<int>();
  };
  const int four = tensors(between("tp8.yaml", "tp4pp2.yaml", "--format json"));
  const int eight =
      tensors(between("tp8.yaml", "tp4pp2.yaml", "--set model.layers=8 --format json"));
  EXPECT_GT(eight, 1.8 * four);
  const std::string shrunk = "--to-cluster two-dgx-h100 --set to_cluster.nodes=1 ";
  EXPECT_EQ(between("tp8.yaml", "tp8dp2.yaml", "").code, 0);
  EXPECT_THAT(between("tp8.yaml", "tp8dp2.yaml", shrunk).err, HasSubstr("has 8 devices"));
  EXPECT_THAT(between("tp8.yaml", "tp8dp2.yaml", "--set cluster.nodes=1").err,
              HasSubstr("has 8 devices"));
  EXPECT_THAT(between("tp8.yaml", "tp8.yaml", "--set to_cluster.nodes=1").err,
              HasSubstr("there is no such value to set"));
}

TEST_F(ReshardPhases, GoesOnAfterAFailureWhereThereAreReplicas) {
  const Outcome survived = between("tp8dp2.yaml", "tp8.yaml", "--down 3");
  EXPECT_EQ(survived.code, 0) << survived.err;
  const Outcome lost = between("tp8dp2.yaml", "tp4pp2.yaml", "--down 3,11");
  EXPECT_EQ(lost.code, 3);
  EXPECT_THAT(lost.err, HasSubstr("of layers.0.qkv.weight"));
  const Outcome full = between("tp8dp2.yaml", "tp8dp2.yaml", "--down 3");
  EXPECT_EQ(full.code, 2);
  EXPECT_THAT(full.err, HasSubstr("has 15 devices that are up"));
}

// A second node joins: 8 devices become 12 of 16. Each of the 4 tensor ranks of 3 replicas needs
// two old slices, one of which 4 of the devices have.
TEST_F(ReshardPhases, GoesOnAfterTheClusterGrew) {
  folder_.write("tp4dp3.yaml", "{tensor_parallel: 4, data_parallel: 3, global_batch: 12}\n");
  std::string one = text_of(fs::path(FORESHARD_SOURCE_DIR) / "configs/clusters/two-dgx-h100.yaml");
  const std::string two = "nodes: 2";
  ASSERT_NE(one.find(two), std::string::npos);
  folder_.write("one-node.yaml", one.replace(one.find(two), two.size(), "nodes: 1"));
  const auto grow = [&](const std::string& to) {
    return foreshard(fmt::format(
        "reshard --from-strategy {} --to-strategy {} --model {} "
        "--cluster {} {} --format json",
        path("tp8.yaml"), path("tp4dp3.yaml"), path("model.yaml"), path("one-node.yaml"), to));
  };
  const Outcome grown = grow("--to-cluster two-dgx-h100");
  ASSERT_EQ(grown.code, 0) << grown.err;
  EXPECT_EQ(json::parse(grown.out)["devices"].size(), 12);
  const Outcome small = grow("");
  EXPECT_EQ(small.code, 2);
  EXPECT_THAT(small.err, HasSubstr("= 12 ranks, but cluster two-dgx-h100 has 8 devices"));
}

TEST_F(ReshardPhases, DevicesOfOneNumberAreOfOneKind) {
  const Outcome other = between("tp8.yaml", "tp4pp2.yaml", "--to-cluster two-dgx-a100");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("device 0 is H100-SXM in cluster two-dgx-h100 and A100-SXM"));
}

// Where devices differ the one that is fullest for its size counts, not the one with most bytes.
TEST_F(ReshardPhases, MemoryIsComparedDeviceByDevice) {
  folder_.write("mixed.yaml",
                "groups: [{nodes: 1, node: dgx-h200}, {nodes: 1, node: dgx-a100-40gb}]\n"
                "fabric: {kind: single-switch}\n");
  const Outcome mixed = foreshard(fmt::format(
      "reshard --from-strategy {0} --to-strategy {0} --model {1} --cluster {2} --format json",
      path("tp8dp2.yaml"), path("model.yaml"), path("mixed.yaml")));
  ASSERT_EQ(mixed.code, 0) << mixed.err;
  EXPECT_LT(json::parse(mixed.out)["memory_capacity_bytes"].get<double>(), 45e9);
}

TEST_F(ReshardPhases, SaysThatItDoesNotFitWhereNothingMoves) {
  const Outcome large = foreshard(
      fmt::format("reshard --from-strategy {0} --to-strategy {0} --model gpt3-175b --cluster "
                  "two-dgx-h100",
                  path("tp8.yaml")));
  EXPECT_EQ(large.code, 3);
  EXPECT_THAT(large.out, HasSubstr("nothing is sent"));
  EXPECT_THAT(large.out, HasSubstr("it does not fit"));
}

TEST_F(ReshardPhases, ForwardAloneNeedsNoOptimizerState) {
  const Outcome served = between("tp8.yaml", "forward.yaml", "");
  EXPECT_EQ(served.code, 0) << served.err;
  EXPECT_THAT(served.out, HasSubstr("no longer needed"));
  const Outcome back = between("forward.yaml", "tp8.yaml", "");
  EXPECT_EQ(back.code, 2);
  EXPECT_THAT(back.err, HasSubstr("does not exist under the first"));
}

TEST_F(ReshardPhases, ConvertsACheckpointToAStrategy) {
  const Outcome done = convert(to_strategy("tp4pp2.yaml"));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("in 8 files"));
  EXPECT_EQ(contents(), "right");
  const Outcome again = convert(to_strategy("tp4pp2.yaml"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("already holds this conversion"));
  const Outcome other = convert(to_strategy("tp8.yaml"));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("exists already; --force"));
  EXPECT_EQ(convert(to_strategy("forward.yaml") + " --force").code, 0);
  EXPECT_EQ(contents(), "right");
}

TEST_F(ReshardPhases, ConvertsACheckpointByRules) {
  folder_.write("rules.yaml", R"(tensors:
  - {match: "*_moment", leave_out: true}
  - {match: "*.master", leave_out: true}
  - {match: "*.qkv.weight", layout: "tp=3 [-, tp~]"}
  - {match: "*norm*", layout: "one=1 @7 [-]"}
  - {match: "*.bias", layout: "one=1 @7 [-]"}
  - {match: "*", layout: "a=2,b=2 @4-7 [a, b]"}
)");
  const Outcome done = convert("--to " + path("rules.yaml") + " --shards raw --format json");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(json::parse(done.out)["files"], 7);
  EXPECT_EQ(contents(), "right");
  const Outcome misfit = convert("--force --to 'tp=2 [-, tp]'");
  EXPECT_EQ(misfit.code, 2);
  EXPECT_THAT(misfit.err, HasSubstr("--to does not fit tensor"));
}

TEST_F(ReshardPhases, FaultsLeaveTheTargetUntouched) {
  convert("");  // makes the source
  const auto fault = [&](const std::string& arguments, int code) {
    const Outcome outcome = convert(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(fs::exists(path("to")) || fs::exists(path("to.partial"))) << outcome.err;
    return outcome.err;
  };
  const std::string good = to_strategy("tp4pp2.yaml");
  EXPECT_THAT(fault("", 2), HasSubstr("needs either --to or --to-strategy"));
  EXPECT_THAT(fault("--to-strategy " + path("tp8.yaml"), 2), HasSubstr("also needs --model"));
  EXPECT_THAT(fault(good + " --max-memory 12", 2), HasSubstr("--max-memory: "));
  EXPECT_THAT(fault(good + " --down x", 2), HasSubstr("--down x: write numbers and ranges"));

  const fs::path shard = fs::path(path("from")) / "rank-00002.safetensors";
  const std::string bytes = text_of(shard);
  const auto with = [&](const std::string& changed) {
    std::ofstream(shard, std::ios::binary) << changed;
    return fault(good, 2);
  };
  EXPECT_THAT(with(bytes.substr(0, bytes.size() / 2)), HasSubstr("it is truncated"));
  EXPECT_THAT(with(bytes + "x"), HasSubstr("it is another file"));
  std::string changed = bytes;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  EXPECT_THAT(with(changed), HasSubstr("is damaged: its SHA-256 is"));
  changed = bytes;
  changed[8] = '[';
  EXPECT_THAT(with(changed), HasSubstr("does not begin with '{'"));
  fs::remove(shard);
  EXPECT_THAT(fault(good, 2), HasSubstr("rank-00002.safetensors: is missing"));
  std::ofstream(shard, std::ios::binary) << bytes;

  // The system refuses to write more than 8 KiB to a file.
  const Outcome full = foreshard(fmt::format(
      "version >/dev/null; (trap '' XFSZ; ulimit -f 16; '{}' reshard --checkpoint {} --out {} {})",
      FORESHARD_PROGRAM, path("from"), path("to"), good));
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write: File too large"));
  EXPECT_FALSE(fs::exists(path("to")));
  EXPECT_EQ(convert(good).code, 0);
  EXPECT_EQ(contents(), "right");
}

}  // namespace foreshard::cli::reshard_phases_test
