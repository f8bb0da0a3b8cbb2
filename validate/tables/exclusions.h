/// \file
/// Rows of tables that are not scored, each with its reason: one list for all
/// (configs/accuracy/excluded-collectives.yaml), at most 5 % of the rows that the project is scored
/// on.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

#include "validate/tables/collective_rows.h"

namespace foreshard::accuracy {

/// A row is left out if all that is given here holds for it.
struct Exclusion {
  std::string source{};     ///< Beginning of the column `source`.
  std::string operation{};  ///< The column `op`. Empty: any.
  Bytes below = Bytes::from_base(std::numeric_limits<double>::infinity());  ///< Smaller rows only.
  std::string reason{};
};
const yaml::Table<Exclusion>& yaml_table(const Exclusion*);

struct Exclusions {
  std::vector<Exclusion> rows{};

  /// The first that holds; null if none does.
  const Exclusion* reason_for(const CollectiveRow& row) const;
};
/// Catalogue folder: accuracy.
const yaml::Table<Exclusions>& yaml_table(const Exclusions*);

}  // namespace foreshard::accuracy
