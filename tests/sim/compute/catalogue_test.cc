// Every GPU of the catalogue: it reads, says where each number comes from, and is plausible.
#include <initializer_list>

#include "tests/test.h"

#include "sim/compute/operator_time.h"

namespace foreshard {
namespace {

namespace fs = std::filesystem;

// Cores of hosts are templates, which nobody measured: CatalogueContents below.
std::vector<fs::path> device_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(FORESHARD_SOURCE_DIR "/configs/devices"))
    if (entry.path().extension() == ".yaml" && !entry.path().stem().string().starts_with("host-"))
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

class Catalogue : public testing::TestWithParam<fs::path> {
 protected:
  void SetUp() override {
    device_ = value_of(yaml::Loader(shipped_options()).read_file<DeviceType>(GetParam()));
  }
  DeviceType device_;
};

template <class T>
void expect_sourced(const yaml::Sourced<T>& number, const std::string& what) {
  EXPECT_FALSE(number.source.empty()) << what;
  EXPECT_NE(number.evidence, yaml::Evidence::kUser) << what;
}

TEST_P(Catalogue, IsNamedLikeItsFile) {
  EXPECT_EQ(device_.name, GetParam().stem().string());
}

TEST_P(Catalogue, EveryNumberHasASource) {
  expect_sourced(device_.memory, "memory");
  expect_sourced(device_.memory_bandwidth, "memory_bandwidth");
  expect_sourced(device_.vector_peak, "vector_peak");
  expect_sourced(device_.multiprocessors, "multiprocessors");
  for (const auto& [dtype, peak] : device_.tensor_peak) expect_sourced(peak, dtype);
  if (device_.power) expect_sourced(*device_.power, "power");
  if (device_.rent) expect_sourced(*device_.rent, "rent");
  const PassEfficiency& passes = device_.efficiency->passes;
  expect_sourced(passes.streaming, "streaming");
  expect_sourced(passes.floor, "floor");
  for (const auto& [name, share] : passes.of) {
    expect_sourced(share, name);
    EXPECT_NE(find_pass(name), nullptr) << name << " is no pass";
  }
  for (const FitRecord& fit : {device_.efficiency->gemm.fit, device_.efficiency->attention.fit})
    EXPECT_NE(fit.evidence, yaml::Evidence::kUser);
}

// Numbers that were measured on a device stay what they are on it.
TEST_P(Catalogue, IsTheDeviceThatItsNumbersWereMeasuredAt) {
  const DeviceEfficiency& efficiency = *device_.efficiency;
  if (std::ranges::count(efficiency.measured_on, device_.name) == 0) return;
  ASSERT_TRUE(efficiency.gemm.measured_at);
  EXPECT_EQ(efficiency.gemm.measured_at->power, device_.power->value);
  EXPECT_EQ(efficiency.gemm.measured_at->peak,
            peak_of(device_, device_.tensor_peak.contains("bf16") ? "bf16" : "fp16"));
  EXPECT_EQ(efficiency.gemm.measured_at->multiprocessors, *device_.multiprocessors);
}

// Wide bounds from the devices of 2017 to 2025; a slipped unit is a factor of 1000 or 8.
TEST_P(Catalogue, IsPlausible) {
  EXPECT_GE(*device_.memory, 16_GB);
  EXPECT_LE(*device_.memory, 310_GB);
  EXPECT_GE(*device_.memory_bandwidth, 600_GB_s);
  EXPECT_LE(*device_.memory_bandwidth, 8_TB_s);
  const double tensor_over_vector = peak_of(device_, "fp16") / *device_.vector_peak;
  EXPECT_GE(tensor_over_vector, 2);
  EXPECT_LE(tensor_over_vector, 32);
  ASSERT_TRUE(device_.power);
  EXPECT_GE(device_.power->value, 250_W);
  EXPECT_LE(device_.power->value, 1.4_kW);
  for (const char* const dtype : {"tf32", "bf16", "fp16"})
    EXPECT_LE(peak_of(device_, dtype), peak_of(device_, "fp8")) << dtype;
}

TEST_P(Catalogue, TimesATransformerLayersKernels) {
  const Gemm gemm{.m = 8192, .n = 8192, .k = 8192, .dtype = DType::kFp16};
  const auto share = [&](Duty duty) {
    return flops_of(gemm) / time_of(gemm, device_, duty).total() / peak_of(device_, "fp16");
  };
  // An MI300X reaches 0.35 to 0.48 in bf16 (traces of AMD-AGI/TraceLens 171dd747), a B200 under
  // load 0.45 to 0.49 (SimuMax 4dcaae513ba7).
  EXPECT_GT(share(Duty::kSustained), 0.35);
  EXPECT_LE(share(Duty::kSustained), share(Duty::kBurst));
  EXPECT_LT(share(Duty::kBurst), 0.95);
  const Pass add{.kind = PassKind::kResidualAdd, .rows = 8192, .columns = 8192};
  const double reached = bytes_of(add) / time_of(add, device_).total() / *device_.memory_bandwidth;
  EXPECT_GT(reached, 0.6);
  EXPECT_LT(reached, 0.95);
}

INSTANTIATE_TEST_SUITE_P(Devices, Catalogue, testing::ValuesIn(device_files()),
                         [](const auto& tested) {
                           std::string name = tested.param.stem().string();
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Those that others refer to by name.
TEST(CatalogueContents, HasTheDevicesOfPublishedRuns) {
  for (const char* const name :
       {"V100-SXM-16GB", "V100-SXM-32GB", "A100-SXM-40GB", "A100-SXM-80GB", "A100-PCIe-40GB",
        "A100-PCIe-80GB", "H100-SXM", "H100-PCIe", "H200-SXM", "H800-SXM", "A800-SXM-80GB", "B200",
        "GB200", "B300", "GB300", "GH200-96GB"}) {
    EXPECT_TRUE(yaml::Loader(shipped_options()).read_ref<DeviceType>(name)) << name;
  }
}

// As nvidia-smi, rocm-smi or PyTorch report it: data sheets count in GB of 2^30 bytes, or in none.
// V100 32 GB: 32,510 MiB are 31.748 GiB; MI300X: 206,141,652,992 bytes are 191.984 GiB.
TEST(CatalogueContents, HasTheMemoryThatToolsReport) {
  for (const std::filesystem::path& file : device_files()) {
    const auto device = value_of(yaml::Loader(shipped_options()).read_file<DeviceType>(file));
    EXPECT_NE(device.memory.evidence, yaml::Evidence::kDatasheet) << file;
  }
  for (const auto& [name, gib] :
       std::initializer_list<std::pair<const char*, double>>{{"V100-SXM-32GB", 31.748},
                                                             {"A800-SXM-80GB", 80},
                                                             {"H800-SXM", 79.647},
                                                             {"H100-SXM-96GB", 95},
                                                             {"GH200-96GB", 95.577},
                                                             {"B300", 268.594},
                                                             {"GB300", 277.547},
                                                             {"MI300X", 191.984},
                                                             {"MI325X", 255.984},
                                                             {"MI355X", 287.984},
                                                             {"RTX-4090", 23.988}}) {
    const auto device = yaml::Loader(shipped_options()).read_ref<DeviceType>(name);
    ASSERT_TRUE(device) << device.error().message;
    EXPECT_NEAR(*device->memory / 1_GiB, gib, 0.001) << name;
  }
}

// Nobody measured a GH200's clocks under load: they are the H100's at the 650 W that a Grace of 250
// W leaves of 900 W, 0.88 (580 / 630)^(1/3) = 0.856, and the evidence is its sheet's.
TEST(CatalogueContents, BorrowsTheClocksOfGraceHopper) {
  yaml::Loader loader(shipped_options());
  const auto h100 = loader.read_ref<DeviceType>("H100-SXM");
  const auto gh200 = loader.read_ref<DeviceType>("GH200-96GB");
  ASSERT_TRUE(h100 && gh200);
  const GemmEfficiency& gemm = gh200->efficiency->gemm;
  EXPECT_NEAR(sustained_on(*gh200, gemm.sustained),
              h100->efficiency->gemm.sustained * std::cbrt(580.0 / 630.0), 0.001);
  EXPECT_EQ(gemm.fit.evidence, yaml::Evidence::kDatasheet);
  EXPECT_EQ(gh200->efficiency->attention_of.at("cudnn").fit.evidence, yaml::Evidence::kTransferred);
}

// Clocks that nothing takes away from are a claim: its line says what was measured under load, or
// whose they are.
TEST(CatalogueContents, SaysWhyClocksHoldUnderLoad) {
  for (const auto& entry :
       fs::directory_iterator(FORESHARD_SOURCE_DIR "/configs/devices/efficiency")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      const std::size_t at = line.find("sustained: 1");
      if (at == std::string::npos) continue;
      EXPECT_NE(line.find("  # ", at), std::string::npos) << entry.path() << ": " << line;
    }
  }
}

// What nobody measured must not say so.
TEST(CatalogueContents, CoresAndSocketsOfHostsAreTemplates) {
  yaml::Loader loader(shipped_options());
  const auto core = loader.read_ref<DeviceType>("host-core");
  ASSERT_TRUE(core) << core.error().message;
  EXPECT_EQ(*core->multiprocessors, 1);
  EXPECT_EQ(core->vector_peak.evidence, yaml::Evidence::kUser);
  EXPECT_EQ(core->efficiency->gemm.fit.evidence, yaml::Evidence::kUser);
  EXPECT_EQ(core->efficiency->attention.fit.evidence, yaml::Evidence::kUser);
  EXPECT_EQ(core->efficiency->passes.streaming.evidence, yaml::Evidence::kUser);
  const auto socket = value_of(loader.read_ref<DeviceType>("host-socket"));
  EXPECT_EQ(socket.efficiency->gemm.fit.evidence, yaml::Evidence::kUser);
  EXPECT_EQ(socket.efficiency->passes.streaming.evidence, yaml::Evidence::kUser);
}

}  // namespace
}  // namespace foreshard
