/// \file
/// Parses kernels from their descriptions, for files that name kernels.
#pragma once

#include <optional>
#include <string_view>

#include "strategies/program/ir/kernel.h"

namespace foreshard {

/// The kernel whose `describe` is exactly this text; nothing if there is none.
std::optional<Kernel> kernel_from(std::string_view text);

}  // namespace foreshard
