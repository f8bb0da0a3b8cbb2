#include "base/yaml/sourced.h"

namespace foreshard::yaml {

const Names<Evidence>& yaml_names(const Evidence*) {
  static const Names<Evidence> names{
      {"measured", Evidence::kMeasured, "Read off an experiment on this very thing."},
      {"fitted", Evidence::kFitted, "Fitted to measurements of this thing through a model."},
      {"transferred", Evidence::kTransferred, "Measured or fitted on a relative of this thing."},
      {"datasheet", Evidence::kDatasheet, "The vendor's word."},
      {"user", Evidence::kUser, "The user's word."},
  };
  return names;
}

}  // namespace foreshard::yaml
