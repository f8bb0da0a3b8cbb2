/// \file
/// Traffic of other jobs or of storage on the cluster's links.
///
///     background:
///       - {from: node0/gpu0, to: node5/gpu0, rate: 10 GB/s}      # elastic: shares
///       - {links: "node*/nic0", rate: 5 GB/s, kind: constant,     # open loop: takes
///          start: 1 s, end: 2 s, period: 4 s}
///
/// An *elastic* flow takes the max-min share of its path that `connections` connections would get
/// next to the job's own, up to `rate`; congestion-controlled traffic approaches this share. A
/// *constant* flow takes its rate from every link that it crosses, whatever else uses the link; the
/// job shares the rest. Both are exact under the engine's max-min sharing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

#include "sim/disturbance/plan.h"

namespace foreshard::disturbance {

enum class BackgroundKind : std::uint8_t { kElastic, kConstant };

struct Background {
  /// Selectors of devices. Equal numbers of senders and receivers are paired in order; a single
  /// sender or receiver is paired with all devices on the other side.
  std::optional<std::string> from;
  std::optional<std::string> to;
  /// Alternative to `from` and `to`: one flow over each of these links alone.
  std::optional<std::string> links;
  std::optional<BytesPerSecond> rate;
  BackgroundKind kind = BackgroundKind::kElastic;
  double connections = 1;
  Seconds start{};
  std::optional<Seconds> end;
  std::optional<Seconds> period;
};

const yaml::Names<BackgroundKind>& yaml_names(const BackgroundKind*);
const yaml::Table<Background>& yaml_table(const Background*);

Status add_background(Plan& plan, const std::vector<Background>& background,
                      const ClusterView& cluster, const ErrorAt& error);

}  // namespace foreshard::disturbance
