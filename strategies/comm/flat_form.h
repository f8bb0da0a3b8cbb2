/// \file
/// Turns an algorithm's pattern and one protocol's numbers into a time, in two steps, so that a fit
/// can try many sets of numbers on one pattern. collective.cc does it for every form.
#pragma once

#include <string>
#include <vector>

#include "strategies/comm/algorithms.h"
#include "strategies/comm/collective.h"
#include "strategies/comm/parameters.h"

namespace foreshard::comm {

/// Seconds that a byte of the operation takes on the slowest link of each kind, links alone; 0
/// where the pattern has no such link.
struct LinkDemand {
  double nvlink = 0;
  double pcie = 0;  ///< PCIe, and links between sockets.
  double network = 0;
  /// Bytes per byte of the operation on the busiest link between a device and its switch or socket,
  /// if the pattern crosses the root complex between GPUs of one host, else 0.
  double through_host = 0;
};
LinkDemand demand_of(const Pattern& pattern, const ClusterView& cluster);

/// The software that drives the network adapters of a group.
struct GroupTransport {
  TransportNumbers numbers;
  bool ordered = true;                                 ///< See Transport.
  std::vector<std::string> algorithms{}, protocols{};  ///< Allowed names; empty: all.
};
/// The numbers of the slowest adapter in each respect, over all members. A transport for which
/// `parameters` have numbers (own_numbers) takes these instead of its own.
/// \return kInvalidInput if a transport gives numbers although `parameters` have their own for it,
///     or if two transports leave no algorithm or no protocol that both allow.
Result<GroupTransport> transport_of(const Participants& group, const Parameters& parameters);

/// False if the protocol needs ordered writes, which the network does not guarantee, or if the
/// transport's settings exclude the algorithm or the protocol.
bool can_use(const FormParameters& form, CollectiveKind kind, const Pattern& pattern,
             const GroupTransport& transport);

/// The numbers of one form on one pattern.
struct FormNumbers {
  Seconds latency;
  double bandwidth_fraction = 1;  ///< See FlatCollective.
  LinkEfficiency efficiency{};    ///< See FlatCollective.
  BytesPerSecond rate_cap;        ///< See FlatCollective.
  StartUp start;                  ///< See FlatCollective.
  double channels = 1;

  BytesPerSecond idle_rate(const LinkDemand& demand) const;
};
FormNumbers numbers_of(const Algorithm& algorithm, const Pattern& pattern, const LinkDemand& demand,
                       const FormParameters& form, const TransportNumbers& transport);

}  // namespace foreshard::comm
