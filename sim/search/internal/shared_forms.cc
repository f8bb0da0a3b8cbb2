#include "sim/search/internal/shared_forms.h"

namespace foreshard::search {
namespace {

constexpr std::size_t kRememberedNodes = 100'000'000;  // nodes of shapes

}  // namespace

std::shared_ptr<const PlanForms> SharedForms::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto known = forms_.find(key);
  return known == forms_.end() ? nullptr : known->second;
}

void SharedForms::add(const Key& key, const std::shared_ptr<const PlanForms>& forms) {
  const std::lock_guard lock(mutex_);
  if (nodes_ > kRememberedNodes) {
    forms_.clear();
    nodes_ = 0;
  }
  if (!forms_.try_emplace(key, forms).second) return;  // another thread was faster
  for (const PlanForm& form : forms->forms) nodes_ += form.shape.nodes();
}

}  // namespace foreshard::search
