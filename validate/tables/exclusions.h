/// \file
/// Rows of tables of collectives that are not scored, each with its reason. One list serves all
/// tables (configs/accuracy/excluded-collectives.yaml) and leaves out at most 5 % of the rows on
/// which foreshard is scored. Used by collectives.cc and by validate/calibrate/collective_fit.cc.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

#include "validate/tables/collective_rows.h"

namespace foreshard::accuracy {

/// A row is left out if it meets all the conditions given here.
struct Exclusion {
  std::string source{};     ///< Beginning of the column `source`.
  std::string operation{};  ///< Value of the column `op`; empty: any.
  /// Only rows of fewer bytes; default: any size.
  Bytes below = Bytes::from_base(std::numeric_limits<double>::infinity());
  std::string reason{};
};
const yaml::Table<Exclusion>& yaml_table(const Exclusion*);

struct Exclusions {
  std::vector<Exclusion> rows{};

  /// The first exclusion that applies to the row; null if none does.
  const Exclusion* reason_for(const CollectiveRow& row) const;
};
/// Catalogue folder: accuracy.
const yaml::Table<Exclusions>& yaml_table(const Exclusions*);

}  // namespace foreshard::accuracy
