/// \file
/// The layers of each pipeline stage in Megatron's notation: "Et*3|(tt|)*29,m|L" (E: the embedding,
/// t: a layer, m: a prediction module, L: the loss; bars separate stages, chunk by chunk).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foreshard::launch::internal {

struct StageLayout {
  std::vector<std::int64_t> layers{};  ///< Number of layers of each stage.
  bool predictions_apart = false;      ///< Some prediction is not on the last stage.
};
/// \return kInvalidInput, with the fault.
Result<StageLayout> read_layout(std::string_view text);

/// \pre layers has the layers of each stage.
std::string written_layout(const std::vector<std::int64_t>& layers, std::int64_t predictions);

}  // namespace foreshard::launch::internal
