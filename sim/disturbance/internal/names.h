/// \file
/// How disturbances name parts of a cluster in messages and reports.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/disturbance/plan.h"

namespace foreshard::disturbance::internal {

inline constexpr std::size_t kMostNames = 16;
inline constexpr const char* kNamesHelp =
    "vertices are called node0/gpu0, node0/nic0, pod0/leaf0, spine0, ...; * stands for any text "
    "(foreshard topology show --format dot lists them)";

std::string name_of(const ClusterView& cluster, DeviceId device);
std::string name_of(const ClusterView& cluster, LinkId link);

template <class Id>
std::vector<std::string> names_of(const ClusterView& cluster, std::span<const Id> ids) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ids.size() && i < kMostNames; ++i)
    names.push_back(name_of(cluster, ids[i]));
  return names;
}

/// "80 %".
std::string percent(double part);

}  // namespace foreshard::disturbance::internal
