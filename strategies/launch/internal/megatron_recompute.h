/// \file
/// The recomputation that options of Megatron-LM describe; internal/formats.h lists the notes.
#pragma once

#include "strategies/launch/internal/format.h"

namespace foreshard::launch::internal {

/// \pre the draft has the stages and their chunks.
Status finish_megatron_recomputation(Draft& draft);
void spread_megatron_recomputation(Draft& draft, const Strategy& strategy);

}  // namespace foreshard::launch::internal
