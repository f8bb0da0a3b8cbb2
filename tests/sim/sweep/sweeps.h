/// \file
/// Small sweeps for tests: eight and sixteen devices, a model of four layers, some milliseconds a
/// point.
#pragma once

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/sweep/evaluate.h"

namespace foreshard::sweep {

inline constexpr const char* kStudy =
    "cluster: {name: box, node: dgx-a100-80gb, fabric: {kind: single-switch}, rent: 2 USD/h}\n"
    "model: {name: small, layers: 4, hidden: 1024, heads: 16, vocabulary: 32000, sequence: 512}\n"
    "strategy: {tensor_parallel: 2, data_parallel: 4, global_batch: 16, framework: megatron-lm}\n";

/// A sweep of the study above: `text` is the rest of its file.
inline Result<LoadedSweep> sweep_of(const TemporaryFolder& folder, const std::string& text) {
  folder.write("base.yaml", kStudy);
  const auto file = folder.write("sweep.yaml", "study: base.yaml\n" + text);
  return load_sweep(file.string(), shipped_options());
}

inline Setup setup_of(const TemporaryFolder& folder, const std::string& text) {
  auto sweep = value_of(sweep_of(folder, text));
  return {
      .sweep = std::move(sweep), .catalogue = {FORESHARD_SOURCE_DIR "/configs"}, .version = "test"};
}

}  // namespace foreshard::sweep
