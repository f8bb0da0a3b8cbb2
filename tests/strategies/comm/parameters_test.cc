#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/yaml/loader.h"
#include "tests/strategies/comm/clusters.h"

#include "strategies/comm/collective.h"

namespace foreshard::comm {
namespace {

using testing::HasSubstr;

Result<Parameters> nccl() {
  yaml::Loader loader({.catalogue = {FORESHARD_SOURCE_DIR "/configs"}});
  return loader.read_ref<Parameters>("nccl");
}

TEST(NcclParameters, HaveASourceAndServeEveryKind) {
  const auto parameters = nccl();
  ASSERT_TRUE(parameters) << parameters.error().message;
  for (const FormParameters& form : parameters->forms) {
    EXPECT_FALSE(form.source.empty()) << form.algorithm;
    EXPECT_NE(form.evidence, yaml::Evidence::kUser) << form.algorithm;
  }
  const auto cluster = rails(2, 4);
  for (const auto kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
        CollectiveKind::kBroadcast, CollectiveKind::kAllToAll})
    EXPECT_TRUE(predict(kind, 1_MB, everyone(cluster), *parameters)) << name_of(kind);
  EXPECT_TRUE(predict(CollectiveKind::kSend, 1_MB, first(cluster, 2), *parameters));
}

// LL for small messages, Simple for large ones, as NCCL does.
TEST(NcclParameters, ChooseTheProtocolBySize) {
  const auto parameters = nccl();
  ASSERT_TRUE(parameters) << parameters.error().message;
  const auto cluster = star(8);
  const auto protocol = [&](Bytes bytes) {
    return predict(CollectiveKind::kAllReduce, bytes, everyone(cluster), *parameters)
        ->form.protocol;
  };
  EXPECT_EQ(protocol(1_KiB), "LL");
  EXPECT_EQ(protocol(1_GiB), "Simple");
}

TEST(Parameters, RefuseAnUnknownAlgorithm) {
  yaml::Loader loader;
  const auto parameters = loader.read_text<Parameters>(R"(
name: mine
forms:
  - algorithm: rign
    protocol: LL
    base: 5 us
    hop: {nvlink: 1 us, pcie: 1 us, network: 1 us}
    efficiency: {nvlink: 1, pcie: 1, network: 1}
)",
                                                       "mine.yaml");
  ASSERT_FALSE(parameters);
  EXPECT_THAT(parameters.error().message, HasSubstr("unknown algorithm 'rign'"));
  EXPECT_THAT(parameters.error().message, HasSubstr("mine.yaml:4"));
}

}  // namespace
}  // namespace foreshard::comm
