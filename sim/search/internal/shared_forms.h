/// \file
/// A cache of the forms of plans that several estimators share: threads that rank parts of a space
/// meet the same forms, and planning thousands of passes is most of the cost of an estimate.
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

/// Used by any number of estimators, for strategies of one study (one model, framework, batch and
/// optimizer) none of which sets a granularity. Thread-safe.
class SharedForms {
 public:
  /// The key of a form among such strategies.
  struct Key {
    Pattern pattern{};
    std::string schedule{};
    std::vector<std::string> actions{};
    std::vector<double> pass_times{};
    std::vector<std::int64_t> cut{};
    std::array<std::int64_t, 4> numbers{};  ///< Chunks, micro-batches, and other numbers.
    auto operator<=>(const Key&) const = default;
  };

  /// Null where the form is not known.
  std::shared_ptr<const PlanForms> find(const Key& key) const;
  void add(const Key& key, const std::shared_ptr<const PlanForms>& forms);

 private:
  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<const PlanForms>> forms_;
  std::size_t nodes_ = 0;
};

}  // namespace foreshard::search
