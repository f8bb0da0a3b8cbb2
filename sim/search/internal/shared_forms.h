/// \file
/// The forms of plans that several estimators share: threads that rank parts of a space meet the
/// same ones, and to plan thousands of passes is most of what an estimate costs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sim/search/internal/forms.h"

namespace foreshard::search {

/// Of any number of estimators for strategies of one study (one model, framework, batch,
/// optimizer), none of which sets a granularity; safe for several threads.
class SharedForms {
 public:
  /// What tells the forms of such strategies apart.
  struct Key {
    Pattern pattern{};
    std::string schedule{};
    std::vector<std::string> actions{};
    std::vector<double> pass_times{};
    std::vector<std::int64_t> cut{};
    std::array<std::int64_t, 4> numbers{};  ///< Chunks, micro-batches, and what else is numbers.
    auto operator<=>(const Key&) const = default;
  };

  /// Null where there is none.
  std::shared_ptr<const PlanForms> find(const Key& key) const;
  void add(const Key& key, const std::shared_ptr<const PlanForms>& forms);

 private:
  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<const PlanForms>> forms_;
  std::size_t nodes_ = 0;
};

}  // namespace foreshard::search
