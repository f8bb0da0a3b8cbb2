/// \file
/// Helpers of the functions that build schedules: the slots of one stage under construction, and
/// faults of shapes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {

inline Error fault_of(std::string_view schedule, const std::string& why) {
  return {Error::Code::kInvalidInput, std::string(schedule) + ": " + why};
}

/// The slots of one stage. Each kind of pass takes the micro-batches of a chunk in ascending order.
struct Passes {
  std::vector<Slot> slots{};

  void forward(std::int32_t chunk, std::int32_t times = 1) {
    for (std::int32_t i = 0; i < times; ++i) add(Direction::kForward, chunk, forward_);
  }
  void backward(std::int32_t chunk, PassPart part = PassPart::kWhole) {
    add(Direction::kBackward, chunk, part == PassPart::kWeight ? weight_ : backward_, part);
  }
  void input(std::int32_t chunk) { backward(chunk, PassPart::kInput); }
  /// Lets the last slot, a backward pass, overlap the slot before it.
  void pair() { slots.back().beside = true; }
  void weight(std::int32_t chunk) { backward(chunk, PassPart::kWeight); }

  /// Numbers of micro-batches that have run forward, backward, and weight gradients.
  std::int32_t forwards(std::int32_t chunk) const { return count(forward_, chunk); }
  std::int32_t backwards(std::int32_t chunk) const { return count(backward_, chunk); }
  std::int32_t weights(std::int32_t chunk) const { return count(weight_, chunk); }

 private:
  using Counts = std::vector<std::int32_t>;
  static std::int32_t count(const Counts& counts, std::int32_t chunk) {
    const auto index = static_cast<std::size_t>(chunk);
    return index < counts.size() ? counts[index] : 0;
  }
  void add(Direction direction, std::int32_t chunk, Counts& counts,
           PassPart part = PassPart::kWhole) {
    const auto index = static_cast<std::size_t>(chunk);
    if (counts.size() <= index) counts.resize(index + 1);
    slots.push_back({direction, chunk, counts[index]++, part});
  }

  Counts forward_;
  Counts backward_;
  Counts weight_;
};

/// Builds a table by calling `make(stage, passes)` for each stage.
template <class Make>
Table each_stage(const PipelineShape& shape, Make make) {
  Table table;
  for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
    Passes passes;
    make(stage, passes);
    table.push_back(std::move(passes.slots));
  }
  return table;
}

}  // namespace foreshard::schedule
