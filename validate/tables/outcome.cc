#include "validate/tables/outcome.h"

#include <fmt/format.h>

#include "base/check.h"

namespace foreshard::accuracy {

std::string_view name_of(RowStatus status) {
  switch (status) {
    case RowStatus::kOk:
      return "ok";
    case RowStatus::kUnsupported:
      return "unsupported";
    case RowStatus::kInfeasible:
      return "infeasible";
    case RowStatus::kExcluded:
      return "excluded";
  }
  FORESHARD_CHECK(false);
}

std::map<std::string, std::int64_t> reasons_of(const std::vector<Outcome>& rows) {
  std::map<std::string, std::int64_t> counts;
  for (const Outcome& row : rows)
    if (row.status != RowStatus::kOk)
      ++counts[fmt::format("{}: {}", name_of(row.status), row.reason)];
  return counts;
}

void set_range(Outcome& outcome, const study::ErrorRange& range) {
  outcome.low = *outcome.predicted * range.low;
  outcome.high = *outcome.predicted * range.high;
}

std::optional<Pair> Outcome::pair() const {
  if (status != RowStatus::kOk || !measured || !predicted) return std::nullopt;
  return Pair{.measured = *measured, .predicted = *predicted, .low = low, .high = high};
}

std::string family_of(std::string_view source) {
  const auto commit = source.find('@');
  const auto colon = source.find(':', commit == std::string_view::npos ? 0 : commit);
  return std::string(source.substr(0, colon));
}

}  // namespace foreshard::accuracy
