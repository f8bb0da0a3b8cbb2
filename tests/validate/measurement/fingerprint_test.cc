
#include "tests/test.h"

#include "validate/measurement/measurement.h"

namespace foreshard::measure {
namespace {

program::Program small() {
  program::Program program{.name = "small", .mesh = {{"data", 1}}, .streams = {{"compute"}}};
  program.blocks.push_back({"one", {{.name = "a", .body = program::HostWork{1_ms}}}});
  program.roles.push_back({.name = "all", .ranks = {0}, .calls = {{.block = program::BlockId(0)}}});
  return program;
}

TEST(Fingerprint, IsOfWhatIsToBeDone) {
  const std::string of_small = fingerprint_of(small());
  EXPECT_EQ(of_small.size(), 16u);
  EXPECT_EQ(fingerprint_of(small()), of_small);

  program::Program other = small();
  other.blocks[0].tasks[0].body = program::HostWork{2_ms};
  EXPECT_NE(fingerprint_of(other), of_small);

  other = small();
  other.launch_time = 4_us;  // a forecast, not work
  EXPECT_EQ(fingerprint_of(other), of_small);
}

}  // namespace
}  // namespace foreshard::measure
