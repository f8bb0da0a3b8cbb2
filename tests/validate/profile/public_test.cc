// Public traces, matched with studies of what they recorded. They are not part of the repository:
// without them nothing is tested.

#include <algorithm>

#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli::public_test {

const std::string kTraces = FORESHARD_SOURCE_DIR "/../shared/data/traces/";
const std::string kStudies = "tests/golden/profiles/";

// What `calibrate --profile` tells; empty where the trace is not there.
std::string told(const std::string& study, const std::string& trace) {
  if (!std::filesystem::exists(kTraces + trace)) return {};
  const Outcome outcome =
      foreshard("calibrate " + kStudies + study + " --dry-run --profile " + kTraces + trace);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.out;
}

// The number before the text.
double before(const std::string& text, const std::string& what) {
  const auto end = text.find(what);
  if (end == std::string::npos) return -1e9;
  const auto begin = text.find_last_of(" (", end - 1);
  return std::stod(text.substr(begin + 1, end - begin - 1));
}

// Four layers of experts, forward and backward: 90 % of the GPU time and more belongs to tasks, and
// each half of the layers tells the other half's within 5 %.
TEST(PublicTraces, DeepSeekV3) {
  const std::string text = told("deepseek-v3-chunk.yaml", "deepseek_v3_train_h800.json.gz");
  if (text.empty()) GTEST_SKIP() << "no public traces in ../shared/data";
  EXPECT_GE(before(text, " % of the GPU time"), 90) << text;
  const auto halves = text.find("half of the 4 layers");
  ASSERT_NE(halves, std::string::npos) << text;
  std::string line = text.substr(halves, text.find("\n\n", halves) - halves);
  std::ranges::replace(line, '\n', ' ');
  EXPECT_LE(std::abs(before(line, " %), ")), 5) << line;
  EXPECT_LE(std::abs(before(line.substr(line.find("), ") + 3), " %)")), 5) << line;
}

struct Public {
  const char* study;
  const char* trace;
  double least;  // percent of the GPU time
};

TEST(PublicTraces, OfOtherModels) {
  for (const Public& one :
       {Public{"qwen1.5-0.5b-forward.yaml", "h100_qwen_0.5b_forward.json.gz", 90},
        Public{"gpt-tiny-tp2.yaml", "megatron_tp2_v100.json.gz", 90}}) {
    const std::string text = told(one.study, one.trace);
    if (text.empty()) GTEST_SKIP() << "no public traces in ../shared/data";
    EXPECT_GE(before(text, " % of the GPU time"), one.least) << text;
  }
}

}  // namespace foreshard::cli::public_test
