/// \file
/// How verify's messages are put together.
#pragma once

#include <string>

#include "base/result.h"

#include "strategies/program/ir/program.h"

namespace foreshard::program::internal {

/// `number`: the invariant's number in verify.h.
inline Error violation(int number, const std::string& place, const std::string& why) {
  return {Error::Code::kInvalidInput, "program: " + (place.empty() ? "" : place + ": ") + why +
                                          " (invariant " + std::to_string(number) + ")"};
}

inline std::string in_quotes(const std::string& name) {
  return "'" + name + "'";
}

/// "block 'layer fwd' task 3 'qkv'".
inline std::string place_of(const Block& block, std::size_t task) {
  return "block " + in_quotes(block.name) + " task " + std::to_string(task) + " " +
         in_quotes(block.tasks[task].name);
}
/// "role 'stage 0' call 12".
inline std::string place_of(const Role& role, std::size_t call) {
  return "role " + in_quotes(role.name) + " call " + std::to_string(call);
}

}  // namespace foreshard::program::internal
