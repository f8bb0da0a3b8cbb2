/// \file
/// The question of `foreshard reshard --tensor`, from its text to its answer: how does a tensor
/// move from one layout to another on a cluster?
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "strategies/comm/parameters.h"
#include "strategies/graph/layout.h"
#include "strategies/reshard/explain.h"
#include "strategies/reshard/plan.h"
#include "topology/cluster_view.h"

namespace foreshard::study {

struct TensorReshardText {
  std::string tensor;   ///< Text in the form of parse_tensor(): "bf16[8192, 53248]".
  std::string from;     ///< Text in the form of layout.h: "tp=8 @0-7 [-, tp]".
  std::string to;       ///< Text in the form of layout.h.
  std::string cluster;  ///< A catalogue name, a file, or YAML in braces. Rank r is on device r.
};

struct TensorReshard {
  ClusterView cluster;
  comm::Parameters communication;
  reshard::TensorSpec tensor;
  Layout from;
  Layout to;
};

/// \param options  options whose overrides begin with "cluster" or "communication".
/// \param mark  the prefix of an argument's name in messages: "--".
/// \return kInvalidInput or kIo, with the name of the argument or a place in a file.
Result<TensorReshard> load_reshard(const TensorReshardText& text, yaml::Options options,
                                   std::string_view mark = {});

/// \return The errors of reshard::explain.
Result<reshard::Explanation> explain(const TensorReshard& move,
                                     const reshard::ChooseOptions& options);

}  // namespace foreshard::study
