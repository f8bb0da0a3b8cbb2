#include "strategies/schedule/internal/progress.h"

#include <algorithm>

namespace foreshard::schedule {

Progress::Progress(const Shape& shape, Placement placement)
    : shape_(shape),
      placement_(placement),
      forward_(index(std::int64_t{shape.stages} * shape.chunks, 0), -1),
      backward_(forward_) {}

std::size_t Progress::index(std::int64_t piece, std::int32_t micro_batch) const {
  return static_cast<std::size_t>(piece * shape_.micro_batches + micro_batch);
}

std::optional<double> Progress::ready(std::int32_t stage, const Slot& slot) const {
  const std::int64_t piece = piece_of(placement_, shape_.stages, stage, slot.chunk);
  const std::int64_t last = std::int64_t{shape_.stages} * shape_.chunks - 1;
  double when = 0;
  bool is_there = true;
  const auto read = [&](const std::vector<double>& of, std::int64_t other) {
    const double end = of[index(other, slot.micro_batch)];
    is_there = is_there && end >= 0;
    // The V turns within its last stage.
    const bool is_own =
        other == piece || (placement_ == Placement::kV && piece + other == 2 * shape_.stages - 1);
    when = std::max(when, end + (is_own ? 0 : shape_.times.transfer));
  };
  if (slot.direction == Direction::kForward) {
    if (piece > 0) read(forward_, piece - 1);
  } else if (slot.part == Part::kWeight) {
    read(backward_, piece);
  } else {
    read(forward_, piece);
    if (piece < last) read(backward_, piece + 1);
  }
  return is_there ? std::optional(when) : std::nullopt;
}

double Progress::duration(const Slot& slot) const {
  const PassTimes& times = shape_.times;
  if (slot.direction == Direction::kForward) return times.forward;
  return (slot.part == Part::kWeight ? 0 : times.input) +
         (slot.part == Part::kInput ? 0 : times.weight);
}

void Progress::finish(std::int32_t stage, const Slot& slot, double end) {
  if (slot.part == Part::kWeight) return;
  const std::int64_t piece = piece_of(placement_, shape_.stages, stage, slot.chunk);
  (slot.direction == Direction::kForward ? forward_ : backward_)[index(piece, slot.micro_batch)] =
      end;
}

}  // namespace foreshard::schedule
