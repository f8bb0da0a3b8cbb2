/// \file
/// Studies that a test writes itself.
#pragma once

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/study/study.h"

namespace foreshard::search {

/// Each part in YAML, or a name of the catalogue. The sizes of the strategy do not matter, as in a
/// search.
inline study::LoadedStudy study_of(const std::string& cluster, const std::string& model,
                                   const std::string& strategy) {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "study.yaml", "cluster: " + cluster + "\nmodel: " + model + "\nstrategy: " + strategy + "\n");
  return value_of(study::load_study({.study = file, .sizes_matter = false}, shipped_options()));
}

/// A node of A100 and one of H100.
inline constexpr const char* kMixed =
    "{name: mixed, groups: [{node: dgx-a100-80gb}, {node: dgx-h100}], fabric: {kind: "
    "single-switch}}";

}  // namespace foreshard::search
