#include <algorithm>

#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {

Table granular_one_f_one_b(const std::vector<std::int64_t>& taken, std::int32_t micro_batches) {
  Table table(taken.size());
  std::int32_t ahead = 0;  // w of the next stage
  for (std::size_t stage = taken.size(); stage-- > 0;) {
    const auto own = static_cast<std::int32_t>(taken[stage]);
    const bool is_last = stage + 1 == taken.size();
    ahead += is_last ? own : std::max(own, static_cast<std::int32_t>(taken[stage + 1]));
    ahead = std::min((ahead + own - 1) / own * own, micro_batches);
    std::int32_t forward = 0;
    const auto pass_forward = [&](std::int32_t until) {
      for (; forward < std::min(until, micro_batches); forward += own)
        table[stage].push_back({Direction::kForward, 0, forward});
    };
    pass_forward(ahead);
    for (std::int32_t back = 0; back < micro_batches; back += own) {
      table[stage].push_back({Direction::kBackward, 0, back});
      pass_forward(ahead + back + own);
    }
  }
  return table;
}

}  // namespace foreshard::schedule
