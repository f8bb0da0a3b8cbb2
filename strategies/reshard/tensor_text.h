/// \file
/// Tensors as text on the command line: "bf16[8192, 53248]", "fp32[]".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

/// \return kInvalidInput, with a caret under the place, for an unknown type, an extent that is not
///     a whole number, or more than 2^53 bytes in all (beyond which byte counts are not exact).
Result<TensorSpec> parse_tensor(std::string_view text);

/// Text that `parse_tensor` reads back.
std::string describe(const TensorSpec& tensor);

}  // namespace foreshard::reshard
