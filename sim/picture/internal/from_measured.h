/// \file
/// Pictures of what varies and of measurements beside predictions: results of `elastic`, `accuracy`
/// and `compare`. Faults are thrown (numbers.h).
#pragma once

#include <string>

#include "sim/picture/internal/numbers.h"

namespace foreshard::picture {

std::string draw_days(const Json& result);
std::string draw_goodput(const Json& result);
/// Rows of a time.
std::string draw_accuracy(const Json& result);
/// Rows of memory.
std::string draw_memory_accuracy(const Json& result);
/// Both sides' steps by parts.
std::string draw_two_steps(const Json& result);
/// The predicted and the measured step by kinds of tasks.
std::string draw_measured_step(const Json& result);
std::string draw_tasks(const Json& result);

}  // namespace foreshard::picture
