/// \file
/// What options of Megatron-LM compute again; the notes are those of internal/formats.h.
#pragma once

#include "strategies/launch/internal/format.h"

namespace foreshard::launch::internal {

/// After the stages and their chunks are known.
Status finish_megatron_recomputation(Draft& draft);
void spread_megatron_recomputation(Draft& draft, const Strategy& strategy);

}  // namespace foreshard::launch::internal
