// Times of single operations against public nccl-tests measurements: medians of |time/measured - 1|
// by machine, operation and size, with one bound for each class of machine. The data is not
// shipped; without it the test says so and is skipped. Nothing is tuned per machine: machines
// marked `fitted` gave the numbers of configs/communication/nccl.yaml, the others did not.
#include <cstdio>

#include "base/csv.h"
#include "base/file.h"
#include "tests/test.h"

#include "strategies/comm/collective.h"
#include "topology/cluster_for.h"

namespace foreshard::comm::accuracy_test {

struct Machine {
  const char* file;
  const char* name;  ///< Part of the column `machine`.
  const char* device;
  const char* node;  ///< Where it is not the device's usual one.
  std::optional<BytesPerSecond> internode_per_gpu;
  bool fitted;
  double bound;  ///< On the median error above 16 MB, all operations together.
};

const Machine kMachines[] = {
    {"aiconfigurator_a100", "", "A100-SXM-80GB", "", std::nullopt, true, 0.05},
    {"aiconfigurator_h100", "", "H100-SXM", "", std::nullopt, true, 0.04},
    {"aiconfigurator_b200", "", "B200", "", std::nullopt, true, 0.04},
    {"alcf_a100", "Sophia", "A100-SXM-40GB", "", 200_Gbit_s, true, 0.03},
    {"xxrjun", "10-node", "H100-SXM", "", 400_Gbit_s, true, 0.04},
    {"vtrain_lut_a100", "", "A100-SXM-80GB", "", std::nullopt, false, 0.04},
    {"ml_engineering", "8x A100", "A100-SXM-80GB", "", std::nullopt, false, 0.06},
    {"nvidia_dgxh100", "", "H100-SXM", "", std::nullopt, false, 0.05},
    {"xxrjun", "1-node", "H100-SXM", "", std::nullopt, false, 0.05},
    {"estimate_train_time", "Perlmutter", "A100-SXM-80GB", "a100-4gpu-nvlink-mesh", std::nullopt,
     false, 0.18},
    {"alcf_a100", "Polaris", "A100-SXM-40GB", "a100-4gpu-polaris", std::nullopt, false, 0.40},
    {"aws_efa", "p4de", "A100-SXM-80GB", "hgx-a100-4x100g", std::nullopt, false, 0.22},
    {"vtrain_lut_v100", "", "V100-SXM-32GB", "", std::nullopt, false, 0.18},
    {"aiconfigurator_rtx", "", "RTX-PRO-6000", "", std::nullopt, false, 0.25},
};

std::optional<CollectiveKind> kind_of(const std::string& op) {
  if (op == "all_reduce") return CollectiveKind::kAllReduce;
  if (op == "all_gather") return CollectiveKind::kAllGather;
  if (op == "reduce_scatter") return CollectiveKind::kReduceScatter;
  if (op == "alltoall") return CollectiveKind::kAllToAll;
  if (op == "sendrecv") return CollectiveKind::kSend;
  return std::nullopt;
}

const char* size_class(double bytes) {
  if (bytes < 64e3) return "a < 64 kB";
  if (bytes < 1e6) return "b < 1 MB";
  if (bytes < 16e6) return "c < 16 MB";
  if (bytes < 128e6) return "d < 128 MB";
  return "e larger";
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double magnitude(const std::vector<double>& values) {
  std::vector<double> absolute;
  absolute.reserve(values.size());
  for (const double value : values) absolute.push_back(std::abs(value));
  return median(absolute);
}

TEST(Accuracy, OfSingleOperationsOnPublicMachines) {
  const std::filesystem::path folder = FORESHARD_SOURCE_DIR "/../shared/data/collectives";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no measurements in " << folder;

  const std::filesystem::path configs = FORESHARD_SOURCE_DIR "/configs";
  yaml::Loader loader({.catalogue = {configs}});
  const auto parameters = value_of(loader.read_ref<Parameters>("nccl"));

  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());

  for (const Machine& machine : kMachines) {
    std::map<std::tuple<std::string, int, int, std::string>, std::vector<double>> errors;
    std::vector<double> large;
    for (const auto& file : files) {
      if (file.filename().string().rfind(machine.file, 0) != 0) continue;
      const auto text = value_of(read_file(file, 64_MiB));
      const auto table = read_csv(text, file.string());
      ASSERT_TRUE(table);
      std::map<std::pair<int, int>, ClusterView> clusters;
      for (const auto& row : table->rows) {
        const auto field = [&](const char* name) { return row.fields[*table->column(name)]; };
        const auto kind = kind_of(field("op"));
        const int gpus = std::stoi(field("num_gpus"));
        const int nodes = std::stoi(field("nodes"));
        const double bytes = std::stod(field("bytes"));
        const double measured = std::stod(field("time_us"));
        // A switch does not add 8-bit integers. Among more than two, sendrecv is a ring of
        // transfers at once.
        if (!kind || bytes < 1024 || field("dtype") == "int8") continue;
        if (field("machine").find(machine.name) == std::string::npos) continue;
        if (kind == CollectiveKind::kSend && gpus != 2) continue;

        auto place = clusters.find({gpus, nodes});
        if (place == clusters.end()) {
          const auto config = value_of(cluster_for({.device = machine.device,
                                                    .gpus = gpus,
                                                    .gpus_per_node = gpus / nodes,
                                                    .internode_per_gpu = machine.internode_per_gpu,
                                                    .node = machine.node},
                                                   loader));
          place = clusters.emplace(std::pair(gpus, nodes), value_of(build_cluster(config))).first;
        }
        Participants group{.cluster = &place->second, .devices = {}, .flow = 0};
        for (int i = 0; i < gpus; ++i) group.devices.emplace_back(i);
        const auto forecast = value_of(predict(*kind, bytes * 1_B, group, parameters));
        const double error = forecast.time / (measured * 1_us) - 1;
        errors[std::tuple(field("op"), gpus, nodes, std::string(size_class(bytes)))].push_back(
            error);
        if (bytes >= 16e6) large.push_back(error);
      }
    }
    std::printf("%s %s (%s)\n", machine.file, machine.name,
                machine.fitted ? "fitted" : "not fitted");
    for (const auto& [key, values] : errors) {
      const auto& [op, gpus, nodes, size] = key;
      std::printf("  %-14s %3d GPUs %2d nodes  %-11s median %+6.1f %%  |error| %5.1f %%  (%zu)\n",
                  op.c_str(), gpus, nodes, size.c_str(), 100 * median(values),
                  100 * magnitude(values), values.size());
    }
    std::printf("  above 16 MB: |error| %.1f %% of %zu rows, bound %.0f %%\n",
                100 * magnitude(large), large.size(), 100 * machine.bound);
    EXPECT_FALSE(large.empty()) << machine.file;
    EXPECT_LE(magnitude(large), machine.bound) << machine.file << " " << machine.name;
  }
}

}  // namespace foreshard::comm::accuracy_test
