/// \file
/// The model that options of Megatron-LM describe; internal/formats.h lists the notes.
#pragma once

#include "strategies/launch/internal/format.h"

namespace foreshard::launch::internal {

Status finish_megatron_model(Draft& draft, const Reading& reading);
void spread_megatron_model(Draft& draft, const Writing& writing);

}  // namespace foreshard::launch::internal
