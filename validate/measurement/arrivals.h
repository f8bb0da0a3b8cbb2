/// \file
/// The simulated times at which the results of a rank's communications arrive. A replay of the rank
/// alone needs them. Schema "foreshard.arrivals/1":
///
///     {"schema": "foreshard.arrivals/1", "program": "gpt", "fingerprint": "3f2a...", "rank": 5,
///      "seconds": [null, 0.00123, ...]}      // by instance; null: no communication
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/record/forward.h"
#include "base/result.h"
#include "base/units.h"

namespace foreshard::measure {

inline constexpr std::string_view kArrivalsSchema = "foreshard.arrivals/1";

struct Arrivals {
  std::string program{};
  std::string fingerprint{};
  std::int32_t rank = 0;
  /// One per instance, counted from the step's beginning; empty: no communication.
  std::vector<std::optional<Seconds>> seconds{};
  bool operator==(const Arrivals&) const = default;
};

std::string to_json(const Arrivals& arrivals);
const record::Record<Arrivals>& record_of(const Arrivals*);
/// \return kInvalidInput, naming the place; kUnsupported for another schema version.
Result<Arrivals> arrivals_from_json(std::string_view text);

}  // namespace foreshard::measure
