/// \file
/// What a table is worth before anything runs: whether all stages come to their end, how long they
/// take with equal chunks, and how many micro-batches they have in flight.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {

/// When the stage runs its first and its last slot.
struct Span {
  double begin = 0;
  double end = 0;
};

/// Runs the table, each slot as early as its stage and what it reads allow.
/// \pre fault_in(table, shape, placement) finds none.
std::vector<Span> walk(const Table& table, const Shape& shape, Placement placement);

/// The most that the stage has in flight: from a forward pass to the whole backward pass or the
/// weight gradients of the same chunk and micro-batch.
std::int32_t most_in_flight(const std::vector<Slot>& slots);

/// What is wrong with a table, and where.
struct TableFault {
  std::int32_t stage = 0;
  std::string message{};
  std::string help{};
};
/// A table is sound if
///  1. it has as many stages as `shape`, and names chunks and micro-batches of it alone;
///  2. each stage runs each chunk of each micro-batch forward once, then backward once: whole, or
///     input gradients and, behind them, weight gradients; a slot that runs beside another is as
///     Slot::beside says;
///  3. no stage waits for ever: neither for what it reads, nor for a transfer behind others. Those
///     of one direction, and in a V of one chunk, leave a stage in the order of its slots, and
///     reach it likewise.
/// \return the first fault; nothing if there is none.
std::optional<TableFault> fault_in(const Table& table, const Shape& shape, Placement placement);

/// "F3", "I0"; with `chunks` > 1 by piece of the model: "5F3".
std::string to_text(const Slot& slot, const Shape& shape, Placement placement, std::int32_t stage);

}  // namespace foreshard::schedule
