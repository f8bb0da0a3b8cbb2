/// \file
/// Small models on one or two nodes, as tests of searches and of estimates take them.
#pragma once

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/study/study.h"

namespace foreshard::search {

/// 64 samples a step; each part in YAML, or a name of the catalogue.
inline study::LoadedStudy small_study(const std::string& cluster, const std::string& framework,
                                      const std::string& model) {
  const TemporaryFolder folder;
  const auto file =
      folder.write("study.yaml", "cluster: " + cluster + "\nmodel: " + model +
                                     "\nstrategy: {global_batch: 64, data_parallel: " +
                                     (cluster.find("two") == std::string::npos ? "8" : "16") +
                                     ", framework: " + framework + "}\n");
  return value_of(study::load_study({.study = file}, shipped_options()));
}

inline constexpr const char* kOneDgx = "{name: box, node: dgx-a100-80gb}";

inline constexpr const char* kSmall =
    "{name: small, layers: 8, hidden: 2048, heads: 16, vocabulary: 32000, sequence: 1024}";

inline constexpr const char* kHuge =
    "{name: huge, layers: 96, hidden: 16384, heads: 128, vocabulary: 51200, sequence: 2048}";

}  // namespace foreshard::search
