/// \file
/// What options of Megatron-LM describe: the model, its recomputation and the layers of each stage.
/// internal/formats.h lists the notes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/launch/internal/formats.h"

namespace foreshard::launch::internal {

Status finish_megatron_model(Draft& draft, const ReadContext& reading);
void spread_megatron_model(Draft& draft, const WriteContext& writing);

/// \pre the draft has the stages and their chunks.
Status finish_megatron_recomputation(Draft& draft);
void spread_megatron_recomputation(Draft& draft, const Strategy& strategy);

/// The layers of each pipeline stage in Megatron's notation: "Et*3|(tt|)*29,m|L" (E: the embedding,
/// t: a layer, m: a prediction module, L: the loss; bars separate stages, chunk by chunk).
struct StageLayout {
  std::vector<std::int64_t> layers{};  ///< Number of layers of each stage.
  bool predictions_apart = false;      ///< Some prediction is not on the last stage.
};
/// \return kInvalidInput, with the fault.
Result<StageLayout> read_layout(std::string_view text);

/// \pre layers has the layers of each stage.
std::string written_layout(const std::vector<std::int64_t>& layers, std::int64_t predictions);

}  // namespace foreshard::launch::internal
