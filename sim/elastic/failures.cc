// Draws the failures of one history; run.cc makes a stream for each, and history.cc reads it.
#include "sim/elastic/failures.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"

namespace foreshard::elastic {

Failures::Failures(const std::vector<Hazard>& hazards, std::int64_t nodes, std::uint64_t seed)
    : hazards_(hazards), nodes_(nodes), seed_(mixed(seed)) {
  for (const Hazard& hazard : hazards_) rate_ += 1_s / hazard.between;
}

double Failures::draw() {
  constexpr int kKept = 53;  // bits of a double
  const std::uint64_t bits = mixed(seed_ ^ mixed(++drawn_)) >> (64 - kKept);
  return (static_cast<double>(bits) + 1) * 0x1p-53;
}

std::optional<Failure> Failures::next() {
  if (hazards_.empty()) return std::nullopt;
  now_ += -std::log(draw()) / rate_ * 1_s;
  double left = draw() * rate_;
  std::size_t cause = 0;
  while (cause + 1 < hazards_.size() && left > 1_s / hazards_[cause].between)
    left -= 1_s / hazards_[cause++].between;
  const Hazard& hazard = hazards_[cause];
  const std::int64_t groups = (nodes_ + hazard.group - 1) / hazard.group;
  const auto unit =
      std::min(static_cast<std::int64_t>(draw() * static_cast<double>(groups)), groups - 1);
  const std::int64_t first = unit * hazard.group;
  return Failure{.at = now_,
                 .cause = cause,
                 .of_job = hazard.of_job,
                 .node = first,
                 .nodes = std::min(std::max<std::int64_t>(hazard.taken, 1), nodes_ - first),
                 .takes = hazard.taken > 0,
                 .back = now_ + hazard.repair};
}

}  // namespace foreshard::elastic
