/// \file
/// Which tasks are entries of the memory timeline instead of work.
#pragma once

#include <variant>

#include "strategies/program/ir/program.h"

namespace foreshard::program::internal {

inline bool is_allocate(const Task& task) {
  return std::holds_alternative<Allocate>(task.body);
}
inline bool is_memory(const Task& task) {
  return is_allocate(task) || std::holds_alternative<Free>(task.body);
}

}  // namespace foreshard::program::internal
