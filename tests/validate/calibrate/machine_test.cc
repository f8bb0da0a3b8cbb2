// A known machine is replayed with noise, fitted from the template, and must come out again.
#include "validate/calibrate/machine.h"

#include "base/file.h"
#include "synthetic.h"
#include "tests/test.h"

#include "sim/compute/operator_time.h"
#include "sim/study/run.h"
#include "validate/calibrate/plan.h"

namespace foreshard::calibrate::machine_test {

const std::filesystem::path kConfigs = FORESHARD_SOURCE_DIR "/configs";

struct Known {
  MachineStart start;                      // the template
  MachineStart truth;                      // what is replayed
  std::vector<program::Program> programs;  // of studies
  program::Program plan;
};

program::Program program_of(const std::string& study) {
  const auto loaded = study::load_study({.study = kConfigs / "studies" / (study + ".yaml")},
                                        {.catalogue = {kConfigs}});
  FORESHARD_CHECK(loaded);
  const auto cluster = study::cluster_of(*loaded);
  FORESHARD_CHECK(cluster);
  auto program = study::program_of(*loaded, *cluster);
  FORESHARD_CHECK(program);
  return *std::move(program);
}

Known known() {
  Known result;
  yaml::Loader loader({.catalogue = {kConfigs}});
  auto cluster = loader.read_ref<ClusterConfig>("host-2");
  auto communication = loader.read_ref<comm::Parameters>("host");
  FORESHARD_CHECK(cluster && communication);
  result.start = {*std::move(cluster), *std::move(communication)};
  result.truth = result.start;
  DeviceEfficiency& efficiency = result.truth.cluster.node->value.device.value.efficiency.value;
  efficiency.gemm.rate = 0.31;
  efficiency.gemm.tile_overhead = 0.9_us;
  efficiency.attention.rates.front().forward = 0.05;
  efficiency.attention.rates.front().backward = 0.08;
  efficiency.passes.of.at("gelu_fwd").value = 0.007;
  for (comm::FormParameters& form : result.truth.communication.forms) {
    form.base = 23_us;
    form.channel_rate = form.operations.front() == "all_reduce" ? 0.7_GB_s : 3.1_GB_s;
  }
  for (const char* study : {"host-dp2", "host-tp2", "host-pp2", "host-zero3"})
    result.programs.push_back(program_of(study));
  auto plan = microbenchmarks(result.programs, {});
  FORESHARD_CHECK(plan);
  result.plan = *std::move(plan);
  return result;
}

measure::Measurement replayed(const program::Program& program, const MachineStart& machine,
                              const test::Noise& noise) {
  const auto cluster = build_cluster(machine.cluster);
  FORESHARD_CHECK(cluster);
  return test::replayed(program, *cluster, machine.communication, noise);
}

const FittedValue& value_of(const std::vector<FittedValue>& values, const std::string& name) {
  for (const FittedValue& value : values)
    if (value.name == name) return value;
  ADD_FAILURE() << "no number is called " << name;
  static const FittedValue none;
  return none;
}

TEST(Machine, RecoversAKnownOneFromNoiseAndOutliers) {
  const Known machine = known();
  const auto fit = value_of(calibrate_machine(
      machine.start, {{machine.plan, replayed(machine.plan, machine.truth,
                                              {.spread = 0.02, .outliers = 0.03, .seed = 7})}}));
  ASSERT_TRUE(fit.kernels);
  ASSERT_TRUE(fit.links);
  // Rate and tile overhead pull on the same kernels, so they are held to their intervals; sums of
  // both, the times, to 2 %.
  const FittedValue& rate = value_of(fit.kernels->values, "gemm.rate_of.fp32");
  EXPECT_NEAR(rate.value / 0.31, 1, 0.1);
  EXPECT_LE(rate.low, 0.31);
  EXPECT_GE(rate.high, 0.31);
  const FittedValue& gelu = value_of(fit.kernels->values, "passes.of.gelu_fwd");
  EXPECT_NEAR(gelu.value / 0.007, 1, 0.02);
  const FittedValue& reduce = value_of(fit.links->values, "all_reduce ring rate of a channel");
  EXPECT_NEAR(reduce.value / 0.7e9, 1, 0.05);
  EXPECT_LE(reduce.low, 0.7e9);
  EXPECT_GE(reduce.high, 0.7e9);
  EXPECT_LT(fit.kernels->after.median, 0.02);
  EXPECT_LT(fit.kernels->held_out.model.median, 0.05);
  EXPECT_LT(fit.links->after.median, 0.02);
  EXPECT_LT(fit.links->held_out.median, 0.05);
  EXPECT_GT(fit.kernels->before.p90, 0.2);
  EXPECT_FALSE(fit.outliers.empty());  // those of five times the time are named
  EXPECT_THAT(fit.outliers.front(), HasSubstr("is usual"));
}

// What simulate would say: a study's step on the calibrated machine is that on the true one.
TEST(Machine, PredictsWhatItWasNotFittedTo) {
  const Known machine = known();
  const auto fit = value_of(calibrate_machine(
      machine.start,
      {{machine.plan, replayed(machine.plan, machine.truth, {.spread = 0.02, .seed = 3})}}));
  const auto step = [&](const program::Program& program, const ClusterConfig& config,
                        const comm::Parameters& communication) {
    const auto cluster = build_cluster(config);
    FORESHARD_CHECK(cluster);
    const auto prediction = sim::simulate(*cluster, program, communication, {});
    FORESHARD_CHECK(prediction);
    return prediction->step;
  };
  for (const program::Program& program : machine.programs) {
    const Seconds truth = step(program, machine.truth.cluster, machine.truth.communication);
    EXPECT_NEAR(step(program, fit.cluster, fit.communication) / truth, 1, 0.02) << program.name;
    EXPECT_GT(
        std::abs(step(program, machine.start.cluster, machine.start.communication) / truth - 1),
        0.1);
  }
}

// The files are what simulate reads: they must say exactly what was fitted.
TEST(Machine, FilesReadBack) {
  const Known machine = known();
  auto measurement = replayed(machine.plan, machine.truth, {.spread = 0.02});
  measurement.machines[0].facts["odd"] = "a \"quoted\" \\ thing:\n- {x}";
  const auto fit = calibrate_machine(machine.start, {{machine.plan, measurement}});
  ASSERT_TRUE(fit) << fit.error().message;
  const auto folder = std::filesystem::temp_directory_path() / "foreshard-machine-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const OutputFile& file : files_of(*fit))
    ASSERT_TRUE(write_file(folder / file.name, file.text).ok());
  yaml::Loader loader({.catalogue = {kConfigs}});
  const auto cluster = loader.read_file<ClusterConfig>(folder / "cluster.yaml");
  ASSERT_TRUE(cluster) << cluster.error().message;
  const auto communication =
      value_of(loader.read_file<comm::Parameters>(folder / "communication.yaml"));
  const DeviceType& read = *(**cluster->node).device;
  const DeviceType& written = *(**fit->cluster.node).device;
  EXPECT_EQ(generation_of(read), "host-core");
  EXPECT_EQ(read.efficiency->measured.size(), written.efficiency->measured.size());
  EXPECT_EQ(read.efficiency->gemm.fit.evidence, yaml::Evidence::kFitted);
  EXPECT_THAT(read.efficiency->gemm.fit.source, HasSubstr("2026-01-02"));
  for (const program::Block& block : machine.plan.blocks) {
    const auto* kernel = std::get_if<Kernel>(&block.tasks.front().body);
    if (kernel == nullptr) continue;
    EXPECT_DOUBLE_EQ(time_of(*kernel, read).total() / time_of(*kernel, written).total(), 1)
        << describe(*kernel);
  }
  ASSERT_EQ(communication.forms.size(), fit->communication.forms.size());
  for (std::size_t f = 0; f < communication.forms.size(); ++f) {
    const auto& one = communication.forms[f];
    const auto& other = fit->communication.forms[f];
    EXPECT_EQ(one.operations, other.operations);
    EXPECT_EQ(one.protocol, other.protocol);
    EXPECT_EQ(one.evidence, other.evidence);
    EXPECT_NEAR(one.base / other.base, 1, 1e-3);
    EXPECT_NEAR(one.channel_rate / other.channel_rate, 1, 1e-3);
  }
  std::filesystem::remove_all(folder);
}

std::string fault(const MachineStart& start, const std::vector<MeasuredRun>& runs) {
  return message_of(calibrate_machine(start, runs));
}

// What another device measured is fitted to, as asked, and said.
TEST(Machine, NotesThatAnotherDeviceWasMeasured) {
  const Known machine = known();
  MeasuredRun run{machine.plan, replayed(machine.plan, machine.start, {})};
  const auto notes = [&] {
    const auto fit = calibrate_machine(machine.start, {run});
    FORESHARD_CHECK(fit);
    return to_text(*fit, {.width = 1000});
  };
  EXPECT_THAT(notes(), Not(HasSubstr("but the numbers go into")));
  run.measurement.backend = "cuda";
  run.measurement.machines.front().facts["device"] = "NVIDIA H200";
  EXPECT_THAT(notes(),
              HasSubstr("replayed on 'NVIDIA H200', but the numbers go into device 'host-core'"));
}

// GPT 1.3B's kernels on an H200 whose attention runs at 26 and 14 % of its peak, as the replay's
// own kernels do.
struct OwnKernels {
  MachineStart start;
  MeasuredRun run;
};
OwnKernels own_kernels() {
  const auto study = study::load_study({.study = kConfigs / "studies" / "gpt-1.3b-h200.yaml"},
                                       {.catalogue = {kConfigs}});
  FORESHARD_CHECK(study);
  OwnKernels result{.start = {study->cluster, study->communication}, .run = {}};
  auto plan =
      microbenchmarks({program_of("gpt-1.3b-h200")}, {.device = *(**study->cluster.node).device});
  FORESHARD_CHECK(plan);
  MachineStart truth = result.start;
  DeviceEfficiency& efficiency = truth.cluster.node->value.device.value.efficiency.value;
  for (AttentionRate& rate : efficiency.attention_of.at("cudnn").rates) {
    rate.forward = 0.26;
    rate.backward = 0.14;
  }
  for (auto& [name, share] : efficiency.passes.of) share.value = 0.2;
  efficiency.gemm.rate = 0.7;
  result.run.measurement = replayed(*plan, truth, {.spread = 0.02});
  result.run.measurement.backend = "cuda";
  result.run.measurement.providers.gemm = "cublas";
  result.run.program = *std::move(plan);
  return result;
}
const DeviceEfficiency& efficiency_of(const ClusterConfig& cluster) {
  return *(**cluster.node).device->efficiency;
}
// Megatron-LM takes cuDNN's attention there.
const AttentionRate& rate_of_128(const ClusterConfig& cluster) {
  const auto& rates = efficiency_of(cluster).attention_of.at("cudnn").rates;
  return *std::ranges::find(rates, 128, &AttentionRate::head_dim);
}

// No framework runs them, so a device's numbers stay; products are cuBLAS's and are fitted.
TEST(Machine, LeavesADeviceAsItIsWhereForeshardsOwnKernelsRan) {
  const OwnKernels gpu = own_kernels();
  const auto fit = value_of(calibrate_machine(gpu.start, {gpu.run}));
  EXPECT_EQ(rate_of_128(fit.cluster).forward, 0.698);
  EXPECT_EQ(rate_of_128(fit.cluster).backward, 0.615);
  const DeviceEfficiency& before = efficiency_of(gpu.start.cluster);
  const DeviceEfficiency& after = efficiency_of(fit.cluster);
  ASSERT_EQ(after.passes.of.size(), before.passes.of.size());
  for (const auto& [name, share] : before.passes.of)
    EXPECT_EQ(*after.passes.of.at(name), *share) << name;
  EXPECT_EQ(*after.passes.floor, *before.passes.floor);
  EXPECT_NEAR(after.gemm.rate_of.at("bf16") / 0.7, 1, 0.02);
  EXPECT_FALSE(after.own_kernels);
  ASSERT_FALSE(after.measured.empty());
  for (const MeasuredKernel& one : after.measured) {
    EXPECT_THAT(one.kernel, StartsWith("gemm"));
    EXPECT_THAT(one.source, StartsWith("cublas, replay on bench"));
  }
  // Hopper's attention was measured on the H100; of the H200 it stays a relative's.
  EXPECT_EQ(after.measured_on, std::vector<std::string>{"H200-SXM"});
  EXPECT_EQ(after.gemm.fit.evidence, yaml::Evidence::kFitted);
  EXPECT_EQ(after.attention_of.at("cudnn").fit.evidence, yaml::Evidence::kTransferred);
  EXPECT_EQ(after.passes.of.at("gelu_fwd").evidence, yaml::Evidence::kTransferred);

  const std::string text = to_text(fit, {.width = 1000});
  for (const char* name :
       {"attention_of.cudnn.rates.128.forward", "passes.of.gelu_fwd", "passes.floor"})
    EXPECT_THAT(text, testing::ContainsRegex(std::string(name) +
                                             " .*as before: measured of foreshard's own kernels"));
  EXPECT_THAT(text, HasSubstr("kernels are foreshard's own, which no framework runs"));
  EXPECT_THAT(text, HasSubstr("--own-kernels"));
  EXPECT_THAT(files_of(fit)[3].text, HasSubstr("measured of foreshard's own kernels"));
}

TEST(Machine, TakesForeshardsOwnKernelsWhereAsked) {
  const OwnKernels gpu = own_kernels();
  const auto fit = value_of(calibrate_machine(gpu.start, {gpu.run}, {.own_kernels = true}));
  EXPECT_NEAR(rate_of_128(fit.cluster).forward / 0.26, 1, 0.03);
  EXPECT_NEAR(rate_of_128(fit.cluster).backward / 0.14, 1, 0.03);
  EXPECT_NEAR(*efficiency_of(fit.cluster).passes.of.at("gelu_fwd") / 0.2, 1, 0.03);
  EXPECT_EQ(efficiency_of(fit.cluster).attention_of.at("cudnn").fit.evidence,
            yaml::Evidence::kFitted);
  EXPECT_THAT(to_text(fit, {.width = 1000}), Not(HasSubstr("which no framework runs")));
  // The file says whose kernels it describes: so it may be fitted again without asking.
  EXPECT_TRUE(efficiency_of(fit.cluster).own_kernels);
  EXPECT_THAT(files_of(fit)[3].text, HasSubstr("own_kernels: true"));
  const auto again = value_of(calibrate_machine({fit.cluster, fit.communication}, {gpu.run}));
  EXPECT_EQ(again.kernels->foreign, 0);
}

// Those of others, read from elsewhere, are what frameworks run.
TEST(Machine, TakesKernelsOfFrameworks) {
  OwnKernels gpu = own_kernels();
  gpu.run.measurement.providers.attention = "flash-attn";
  const auto fit = value_of(calibrate_machine(gpu.start, {gpu.run}));
  EXPECT_NEAR(rate_of_128(fit.cluster).forward / 0.26, 1, 0.03);
  EXPECT_EQ(efficiency_of(fit.cluster).passes.of.at("gelu_fwd").value,
            efficiency_of(gpu.start.cluster).passes.of.at("gelu_fwd").value);
}

TEST(Machine, NamesWhatDoesNotFit) {
  const Known machine = known();
  MeasuredRun run{machine.plan, replayed(machine.plan, machine.truth, {})};
  EXPECT_THAT(fault(machine.start, {}), HasSubstr("nothing was measured"));
  EXPECT_THAT(fault(machine.start, {run, run}), HasSubstr("is given twice"));
  MeasuredRun other = run;
  other.program = machine.programs[0];
  EXPECT_THAT(fault(machine.start, {other}), HasSubstr("it measures another Program"));
  other = run;
  other.measurement.shared = true;
  EXPECT_THAT(fault(machine.start, {other}), HasSubstr("its ranks shared a device"));
  other = run;
  other.measurement.ranks[1].tasks.pop_back();
  EXPECT_THAT(fault(machine.start, {other}), HasSubstr("rank 1 has"));
  other = run;
  other.measurement.ranks[0].tasks[3].start = 1e9_s;
  EXPECT_THAT(fault(machine.start, {other}), HasSubstr("ends before it starts"));
  other = run;
  other.measurement.date = "2026-01-03T03:04:05Z";
  other.measurement.providers.gemm = "mkl";
  EXPECT_THAT(fault(machine.start, {run, other}), HasSubstr("was measured of blas and of mkl"));
  MachineStart mixed = machine.start;
  mixed.cluster.groups = {{.nodes = 1, .node = *mixed.cluster.node}};
  mixed.cluster.node.reset();
  EXPECT_THAT(fault(mixed, {run}), HasSubstr("several kinds"));
}

// Makers by what drivers call their devices; where one is unknown, nothing is said.
TEST(Machine, KnowsAnotherMakersDevice) {
  yaml::Loader loader({.catalogue = {kConfigs}});
  const auto a100 = loader.read_ref<DeviceType>("A100-SXM-80GB");
  const auto mi300x = loader.read_ref<DeviceType>("MI300X");
  const auto core = loader.read_ref<DeviceType>("host-core");
  ASSERT_TRUE(a100 && mi300x && core);
  for (const std::string amd : {"AMD Radeon Graphics", "AMD Instinct MI300X", "MI250X"}) {
    EXPECT_TRUE(other_maker(*a100, amd)) << amd;
    EXPECT_FALSE(other_maker(*mi300x, amd)) << amd;
  }
  EXPECT_THAT(other_maker(*mi300x, "NVIDIA H100 80GB HBM3").value_or(""),
              HasSubstr("a device of NVIDIA, but the numbers would go into 'MI300X' of AMD"));
  EXPECT_FALSE(other_maker(*a100, "NVIDIA H800"));
  EXPECT_FALSE(other_maker(*a100, ""));
  EXPECT_FALSE(other_maker(*core, "AMD EPYC"));
}

}  // namespace foreshard::calibrate::machine_test
