/// \file
/// Kernels from their descriptions, for files that name them.
#pragma once

#include <optional>
#include <string_view>

#include "strategies/program/ir/kernel.h"

namespace foreshard {

/// The kernel that `describe` writes as exactly this text; nothing if there is none.
std::optional<Kernel> kernel_from(std::string_view text);

}  // namespace foreshard
