// What one H200 measured (configs/measurements/h200), beside what is predicted of it.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/base/temporary_folder.h"
#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli::h200_test {

const std::string kPlan = "configs/measurements/h200-plan/";
const std::string kMeasured = "configs/measurements/h200/";
const std::string kStudies = "tests/golden/profiles/";

// Calibrated on single kernels alone, the replays of whole steps are predicted within 5 %.
TEST(H200, StepsFollowFromSingleKernels) {
  const TemporaryFolder folder;
  const std::string machine = (folder.path() / "machine").string();
  const std::string gpt = "configs/studies/gpt-1.3b-h200.yaml";
  const std::string llama = "configs/studies/llama3-8b-layers-h200.yaml";
  const Outcome fit = foreshard(
      fmt::format("calibrate {} {} --program {}micro.json --measurement {}micro.json --own-kernels "
                  "-o {}",
                  gpt, llama, kPlan, kMeasured, machine));
  ASSERT_EQ(fit.code, 0) << fit.err;
  for (const std::string_view name : {"gpt-1.3b-h200", "llama3-8b-layers-h200"}) {
    const Outcome compared = foreshard(
        fmt::format("compare configs/studies/{0}.yaml {1}{0}.json --cluster {2}/cluster.yaml "
                    "--max-error 5%",
                    name, kMeasured, machine));
    EXPECT_EQ(compared.code, 0) << compared.out << compared.err;
  }
}

// Percent by which predictions are off, of kernels of 20 us and more.
struct Errors {
  std::vector<double> all;
  double mean(bool absolute) const {
    double sum = 0;
    for (const double error : all) sum += absolute ? std::abs(error) : error;
    return sum / static_cast<double>(all.size());
  }
};

// PyTorch's own kernels, to which no number of the catalogue was fitted: of each way to run a
// kernel, and of products over 1 ms.
TEST(H200, KernelsOfPyTorch) {
  const Outcome compared = foreshard(
      fmt::format("compare configs/studies/gpt-1.3b-h200.yaml {}micro.json --program {}micro.json "
                  "--format json",
                  kMeasured, kPlan));
  ASSERT_EQ(compared.code, 0) << compared.err;
  std::map<std::string, double> predicted;
  const auto result = nlohmann::json::parse(compared.out);
  for (const auto& kernel : result.at("residuals"))
    predicted[kernel.at("name").get<std::string>()] = kernel.at("each").at("predicted_s");
  std::map<std::string, Errors> errors;
  std::ifstream table(FORESHARD_SOURCE_DIR "/" + kMeasured + "pytorch-kernels.csv");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream cells(line);
    std::string name;
    std::string variant;
    double measured = 0;
    std::getline(cells, name, ',');
    std::getline(cells, variant, ',');
    cells >> measured;
    // The Program's attention is cuDNN's.
    if (measured < 20e-6 || variant == "flash2" || !predicted.contains(name)) continue;
    const double error = 100 * (predicted.at(name) / measured - 1);
    const std::string kind = name.substr(0, name.find(' ')) + " " + variant;
    errors[kind].all.push_back(error);
    if (measured > 1e-3 && (kind == "gemm TN" || kind == "gemm NT fp32+="))
      errors["gemm over 1 ms"].all.push_back(error);
  }
  for (const auto& [kind, of] : errors)
    fmt::print("{:<32} {:3} kernels, {:5.1f} % off, {:+6.1f} % in the mean\n", kind, of.all.size(),
               of.mean(true), of.mean(false));
  ASSERT_EQ(errors["attention_fwd cudnn"].all.size(), 6U);
  ASSERT_EQ(errors["gemm over 1 ms"].all.size(), 12U);
  EXPECT_LE(errors["attention_fwd cudnn"].mean(true), 10);
  EXPECT_LE(errors["attention_bwd cudnn"].mean(true), 10);
  EXPECT_LE(errors["gemm NT fp32+="].mean(true), 8);
  EXPECT_LE(std::abs(errors["gemm over 1 ms"].mean(false)), 4);
}

// Steps of PyTorch, back to back, the mean of two runs: some are bound by the device, some by the
// host.
struct Step {
  std::string study;
  std::string settings;
  double measured_ms;
  double within;  // percent
};

TEST(H200, StepsOfPyTorch) {
  const std::string large = "llama3-8b-4-layers-h200.yaml";
  const std::string small = "llama-0.4b-h200.yaml";
  const std::string compiled = " --set strategy.framework=torchtitan";
  const std::string eager = " --set strategy.framework=torchtitan-eager";
  for (const Step& step : {Step{large, eager, 182.7, 10}, Step{large, compiled, 171.8, 10},
                           Step{large, eager + " --set model.sequence=2048", 70.2, 20},
                           Step{large, compiled + " --set model.sequence=2048", 69.9, 20},
                           Step{small, eager, 121.5, 15}, Step{small, compiled, 133.9, 15}}) {
    SCOPED_TRACE(step.study + step.settings);
    const Outcome told = foreshard(
        fmt::format("simulate {}{}{} --format json", kStudies, step.study, step.settings));
    ASSERT_EQ(told.code, 0) << told.err;
    const double ms = 1e3 * nlohmann::json::parse(told.out).at("step").at("time_s").get<double>();
    EXPECT_NEAR(ms, step.measured_ms, step.measured_ms * step.within / 100);
  }
}

// Profiles of three steps each, which nobody marked.
TEST(H200, ProfilesMatchTasks) {
  for (const auto& [study, trace] :
       {std::pair{"llama3-8b-4-layers-h200.yaml", "pytorch-llama3-8b-4-layers.json.gz"},
        std::pair{"llama-0.4b-h200.yaml", "pytorch-llama-0.4b-compiled.json.gz"}}) {
    const Outcome told = foreshard(
        fmt::format("calibrate {}{} --dry-run --profile {}{}", kStudies, study, kMeasured, trace));
    ASSERT_EQ(told.code, 0) << told.err;
    EXPECT_THAT(told.out, HasSubstr(", 3 steps"));
    const auto at = told.out.find("matched to tasks: ");
    ASSERT_NE(at, std::string::npos) << told.out;
    EXPECT_GE(std::stod(told.out.substr(at + 18)), 97) << told.out;
  }
}

}  // namespace foreshard::cli::h200_test
