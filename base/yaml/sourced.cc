#include "base/yaml/sourced.h"

namespace foreshard::yaml {

const Names<Evidence>& yaml_names(const Evidence*) {
  static const Names<Evidence> names{
      {"measured", Evidence::kMeasured, "Measured directly on this very thing."},
      {"fitted", Evidence::kFitted, "Fitted to measurements of this thing through a model."},
      {"transferred", Evidence::kTransferred, "Measured or fitted on a relative of this thing."},
      {"datasheet", Evidence::kDatasheet, "Stated by the vendor."},
      {"user", Evidence::kUser, "Given by the user."},
  };
  return names;
}

}  // namespace foreshard::yaml
