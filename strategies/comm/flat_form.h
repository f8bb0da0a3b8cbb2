/// \file
/// From an algorithm's pattern and one protocol's numbers to a time: what collective.cc does for
/// every form, in two steps, so that a fit can ask for many sets of numbers on one pattern.
#pragma once

#include <string>
#include <vector>

#include "strategies/comm/algorithms.h"
#include "strategies/comm/collective.h"
#include "strategies/comm/parameters.h"

namespace foreshard::comm {

/// Of each kind of link, what a byte of the operation takes on the one that is slowest for it,
/// links alone. Seconds per byte; 0 where the pattern has no such link.
struct Demand {
  double nvlink = 0;
  double pcie = 0;  ///< Also between sockets.
  double network = 0;
  /// Bytes per byte of the operation on the busiest link between a device and its switch or socket,
  /// if the pattern crosses the root complex between GPUs of one host, else 0.
  double through_host = 0;
};
Demand demand_of(const Pattern& pattern, const ClusterView& cluster);

/// How the adapters of a group are driven.
struct GroupTransport {
  TransportNumbers numbers;
  bool ordered = true;                                 ///< See Transport.
  std::vector<std::string> algorithms{}, protocols{};  ///< Likewise.
};
/// The slowest of the members' adapters in each respect; each as `parameters` knows it, if it does.
/// \return kInvalidInput if a transport gives numbers that `parameters` have of their own.
Result<GroupTransport> transport_of(const Participants& group, const Parameters& parameters);

/// False where the protocol needs writes in order that the network does not promise, and where the
/// transport's settings exclude the algorithm or the protocol.
bool can_use(const FormParameters& form, CollectiveKind kind, const Pattern& pattern,
             const GroupTransport& transport);

/// One form's numbers on one pattern.
struct FormNumbers {
  Seconds latency;
  double bandwidth_fraction = 1;  ///< See FlatCollective.
  LinkEfficiency efficiency{};    ///< Likewise.
  BytesPerSecond rate_cap;        ///< Likewise.
  StartUp start;                  ///< Likewise.
  double channels = 1;

  BytesPerSecond idle_rate(const Demand& demand) const;
};
FormNumbers numbers_of(const Algorithm& algorithm, const Pattern& pattern, const Demand& demand,
                       const FormParameters& form, const TransportNumbers& transport);

}  // namespace foreshard::comm
