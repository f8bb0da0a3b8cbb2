// Hostile files end in a message, soon and without a crash.

#include "tests/base/temporary_folder.h"
#include "tests/base/yaml/example.h"
#include "tests/test.h"

namespace foreshard {
namespace {

using example::Cluster;
using example::fault;

std::string repeated(const std::string& part, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += part;
  return result;
}

TEST(YamlLimits, DeepNestingIsRefused) {
  constexpr int kDepth = 10'000;
  EXPECT_THAT(fault("tags: " + repeated("[", kDepth)), HasSubstr("error: "));  // never closed
  EXPECT_THAT(fault("tags: " + repeated("[", kDepth) + repeated("]", kDepth)),
              HasSubstr("more than 64 levels deep"));
  EXPECT_THAT(fault("tags: " + repeated("{a: ", kDepth)), HasSubstr("more than 64 levels deep"));
  EXPECT_THAT(fault(repeated("- ", kDepth)), HasSubstr("more than 64 levels deep"));
  EXPECT_THAT(fault(repeated("? ", kDepth)), HasSubstr("error"));
  std::string indented;
  for (int i = 0; i < 1000; ++i) indented += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(fault(indented), HasSubstr("more than 64 levels deep"));
}

TEST(YamlLimits, DepthThroughAliasesIsRefused) {
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i < 200; ++i)
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
            "]\n";
  EXPECT_THAT(fault(text), HasSubstr("more than 64 levels deep"));
}

TEST(YamlLimits, AliasBombsAreRefusedSoon) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeated(last + ", ", 9);
    text += last + "]\n";
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(fault(text), HasSubstr("more than 200000 values"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(YamlLimits, ReferencesThatFanOutAreRefusedSoon) {
  const TemporaryFolder folder;
  folder.write("devices/d.yaml", "peak: 1 TFLOP/s\nmemory: 1 GiB\n");
  const auto path = folder.write("c.yaml", "name: x\ndevice: d\n");
  yaml::Loader loader({.catalogue = {folder.path()}, .most_values = 6});
  EXPECT_THAT(message_of(loader.read_file<Cluster>(path)), HasSubstr("references expanded"));
}

TEST(YamlLimits, FilesHaveALargestSize) {
  const TemporaryFolder folder;
  const auto path = folder.write("c.yaml", "name: " + std::string(5'000'000, 'x'));
  EXPECT_THAT(error_of(yaml::Loader().read_file<Cluster>(path)),
              Fails(Error::Code::kIo, HasSubstr("larger than the limit of 4.00 MiB")));
}

}  // namespace
}  // namespace foreshard
