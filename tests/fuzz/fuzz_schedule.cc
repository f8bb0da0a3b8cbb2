// Any bytes as a schedule of actions, a line for each stage: its first fault, or a table that has
// no deadlock and reads back from its own text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "strategies/schedule/actions.h"

FORESHARD_FUZZER(fuzz_schedule) {
  using namespace foreshard::schedule;
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::vector<std::string> stages = foreshard::fuzz::parts_of(text, '\n');
  const PipelineShape shape{.stages = static_cast<std::int32_t>(stages.size()),
                            .chunks = data[0] % 4 + 1,
                            .micro_batches = data[1] % 16 + 1,
                            .pairs = data[1] >= 128};
  const Actions actions = read_actions(stages, shape);
  (void)pairs(stages);
  (void)splits(stages);
  if (actions.fault) {
    FORESHARD_CHECK(!actions.fault->message.empty());
    FORESHARD_CHECK(actions.fault->stage >= 0 && actions.fault->stage < shape.stages);
    return 0;
  }
  FORESHARD_CHECK(!fault_in(actions.table, shape, actions.placement));
  FORESHARD_CHECK(walk(actions.table, shape, actions.placement).size() == stages.size());
  return 0;
}
