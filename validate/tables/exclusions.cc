#include "validate/tables/exclusions.h"

#include <algorithm>

namespace foreshard::accuracy {

const Exclusion* Exclusions::reason_for(const CollectiveRow& row) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Exclusion& one) {
    return row.source.starts_with(one.source) &&
           (one.operation.empty() || one.operation == row.op) &&
           row.bytes.value_or(0) * 1_B < one.below;
  });
  return found == rows.end() ? nullptr : &*found;
}

const yaml::Table<Exclusion>& yaml_table(const Exclusion*) {
  using E = Exclusion;
  static const auto table =
      yaml::Table<E>("exclusion", "Rows that are not scored.")
          .required("source", &E::source, "Text with which the column `source` begins.")
          .optional("operation", &E::operation, "Value of the column `op`. Default: any.")
          .optional("below", &E::below, "Leave out only operations of fewer bytes. Default: all.",
                    yaml::positive())
          .required("reason", &E::reason, "Why these rows say nothing about the operation.");
  return table;
}

const yaml::Table<Exclusions>& yaml_table(const Exclusions*) {
  static const auto table =
      yaml::Table<Exclusions>("exclusions", "Rows of tables that are not scored.")
          .folder("accuracy")
          .required("rows", &Exclusions::rows, "The rows to leave out, each with its reason.");
  return table;
}

}  // namespace foreshard::accuracy
