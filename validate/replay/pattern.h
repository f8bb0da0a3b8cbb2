/// \file
/// The numbers that `--verify` sends, and what must come out. They are small integers, so that
/// sums of up to 64 members are exact in every floating-point type down to bf16 (8 bits of
/// significand); beyond, within one rounding per addition.
#pragma once

#include <cstdint>

#include "strategies/program/ir/program.h"

namespace foreshard::replay {

/// What `rank` puts into element `element` of its send buffer for the `ordinal`-th operation of a
/// group; 0 to 4. All-to-all and exchanges: `element` counts within the whole send buffer of the
/// rank; of a transfer within the message.
int sent(std::int32_t rank, std::int64_t ordinal, std::int64_t element);

}  // namespace foreshard::replay
