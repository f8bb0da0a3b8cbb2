#include <algorithm>
#include <fmt/format.h>

#include "tests/configs/probes.h"

#include "sim/elastic/run.h"

namespace foreshard {
namespace {

constexpr const char* kFolder = FORESHARD_SOURCE_DIR "/configs";

std::string result_of(const elastic::Timeline& timeline) {
  const elastic::LoadedTimeline loaded{.name = "line",
                                       .folder = std::filesystem::path(kFolder) / "elastic",
                                       .timeline = timeline,
                                       .loader = yaml::Loader()};
  const auto result = elastic::run_elastic(loaded, {.catalogue = {kFolder}, .progress = {}});
  return result ? elastic::elastic_json(*result) : result.error().message;
}

}  // namespace

Probes<elastic::FailureRates> probes_of(const elastic::FailureRates*, const std::string& /*name*/) {
  return {[](const elastic::FailureRates& rates) {
    elastic::Timeline timeline;
    timeline.study = "llama2-70b-h100-128";
    timeline.train = "100B tokens";
    timeline.failures = yaml::Ref<elastic::FailureRates>{rates, ""};
    timeline.repair = 6_h;
    timeline.detection = 1_min;
    timeline.restart = 2_min;
    timeline.checkpoint.storage = 100_GB_s;
    timeline.policies = {elastic::Policy::kWait};
    timeline.histories = 50;
    return result_of(timeline);
  }};
}

// The searches of shrink take longest: what can be seen without them is seen first, and few
// histories come to few numbers of nodes.
Probes<elastic::Timeline> probes_of(const elastic::Timeline*, const std::string& /*name*/) {
  return {[](elastic::Timeline timeline) {
            std::erase(timeline.policies, elastic::Policy::kShrink);
            return result_of(timeline);
          },
          [](elastic::Timeline timeline) {
            timeline.policies = {elastic::Policy::kShrink};
            timeline.histories = 2;
            return result_of(timeline);
          }};
}

}  // namespace foreshard
