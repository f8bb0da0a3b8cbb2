/// \file
/// Clusters that can be built, but are implausible: unit slips, adapters faster than their slots,
/// devices that nothing joins.
///
///     for (const Finding& finding : implausible(config, cluster, hardware)) ...
///
///     warning: nic-slot: node0/nic0: its port has 400 Gbit/s, its PCIe link 15.8 GB/s
///       help: a port beyond its slot is throttled: is pcie.generation right?
///
/// Rules are a table; the thresholds are HardwareLimits (hardware.h), each with its source.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/page.h"
#include "base/record/forward.h"

#include "topology/cluster_config.h"
#include "topology/hardware.h"

namespace foreshard {

enum class Severity : std::uint8_t {
  kRemark,   ///< Unusual, but may be intended.
  kWarning,  ///< Probably a mistake.
};

struct Finding {
  Severity severity = Severity::kRemark;
  std::string rule;
  std::string place;  ///< The part or the key, and how many more are like it.
  std::string message;
  std::string remedy;
};

struct PlausibilityRule {
  std::string_view name;
  std::string_view summary;
};

/// All rules, in the order in which they report.
std::span<const PlausibilityRule> plausibility_rules();

/// \param cluster  what `build_cluster(config)` gave.
std::vector<Finding> implausible(const ClusterConfig& config, const ClusterView& cluster,
                                 const Hardware& hardware);

std::string to_text(const std::vector<Finding>& findings, const Paper& paper = {});
/// \return a JSON object of the schema foreshard.findings/1, then a line feed.
std::string to_json(const std::vector<Finding>& findings);
struct FindingsResult;
const record::Record<FindingsResult>& record_of(const FindingsResult*);

}  // namespace foreshard
