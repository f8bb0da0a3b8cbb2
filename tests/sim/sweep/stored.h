/// \file
/// A results file of outcomes that nobody simulated, for tests of its storage.
#pragma once

#include <fmt/format.h>

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/sweep/store.h"

namespace foreshard::sweep {

inline constexpr std::int64_t kPoints = 24;

/// A question of one axis.
inline Question question(std::int64_t points) {
  Question question;
  question.name = "stored";
  question.axes.resize(1);
  question.axes[0].name = "x";
  for (std::int64_t i = 0; i < points; ++i) question.axes[0].values.push_back(std::to_string(i));
  return question;
}
inline std::string key(std::int64_t point) {
  return fmt::format("{:064x}", static_cast<std::uint64_t>(point) * 0x9e3779b97f4a7c15u);
}
/// \param size  the number of its characters, about.
inline Outcome outcome(std::int64_t point, std::size_t size = 600) {
  Outcome outcome;
  outcome.status = PointStatus::kInfeasible;
  outcome.why = fmt::format("why of {} {}", point, std::string(size, 'x'));
  outcome.cluster = fmt::format("cluster {}", point);
  outcome.missing = Bytes::from_base(static_cast<double>(point));
  return outcome;
}
/// Stores all points of question(points).
inline void fill(const std::filesystem::path& file, std::int64_t points = kPoints) {
  std::vector<std::string> remarks;
  auto store = value_of(Store::open(file, question(points), "work", remarks));
  for (std::int64_t i = 0; i < points; ++i)
    EXPECT_EQ(message_of(store.put(i, key(i), outcome(i))), "accepted");
  EXPECT_THAT(remarks, IsEmpty());
}

}  // namespace foreshard::sweep
