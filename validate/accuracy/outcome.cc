#include "validate/accuracy/outcome.h"

#include "base/check.h"

namespace foreshard::accuracy {

std::string_view name_of(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kUnsupported:
      return "unsupported";
    case Status::kInfeasible:
      return "infeasible";
    case Status::kExcluded:
      return "excluded";
  }
  FORESHARD_CHECK(false);
}

void set_range(Outcome& outcome, const study::ErrorRange& range) {
  outcome.low = *outcome.predicted * range.low;
  outcome.high = *outcome.predicted * range.high;
}

std::optional<Pair> Outcome::pair() const {
  if (status != Status::kOk || !measured || !predicted) return std::nullopt;
  return Pair{.measured = *measured, .predicted = *predicted, .low = low, .high = high};
}

}  // namespace foreshard::accuracy
