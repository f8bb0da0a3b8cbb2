/// \file
/// Evaluates a table before anything runs: whether all stages reach their end, how long they take
/// with equal chunks, and how many micro-batches they have in flight.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {

/// The time from the start of a stage's first slot to the end of its last.
struct Span {
  double begin = 0;
  double end = 0;
};

/// Runs the table, each slot as early as its stage and its inputs allow. One span per stage.
/// \pre fault_in(table, shape, placement) finds none
std::vector<Span> walk(const Table& table, const Shape& shape, Placement placement);

/// The most micro-batches (times chunks) that a stage has in flight: each from its forward pass to
/// its whole backward pass or its weight gradients.
std::int32_t most_in_flight(const std::vector<Slot>& slots);

/// A fault of a table and its stage.
struct TableFault {
  std::int32_t stage = 0;
  std::string message{};
  std::string help{};
};
/// A table is sound if
///  1. it has as many stages as `shape`, and only chunks and micro-batches of `shape`;
///  2. each stage runs each chunk of each micro-batch forward once, then backward once: whole, or
///     input gradients and, later, weight gradients; a slot that overlaps another obeys
///     Slot::beside;
///  3. no stage deadlocks, neither for an input nor for a transfer queued behind others. The
///     transfers of one direction (in a V, of one direction and chunk) leave a stage in the order
///     of its slots, and arrive in the order of the receiver's slots.
/// \return the first fault; empty if there is none.
std::optional<TableFault> fault_in(const Table& table, const Shape& shape, Placement placement);

/// "F3", "I0"; with several chunks the piece of the model comes first: "5F3".
std::string to_text(const Slot& slot, const Shape& shape, Placement placement, std::int32_t stage);

}  // namespace foreshard::schedule
