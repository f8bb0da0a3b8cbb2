/// \file
/// The interface through which reshard and search ask for costs. `sim/` implements it, so
/// strategies/ stays independent of how times are modelled.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"

namespace foreshard {

/// Bytes that one device sends to another.
struct DeviceTransfer {
  DeviceId from;
  DeviceId to;
  Bytes bytes{};        ///< Invariant: > 0.
  double messages = 1;  ///< Number of messages. Invariant: >= 1.
};

/// Bytes that cross a link.
struct LinkBytes {
  LinkId link;
  Bytes bytes{};
};

/// Share of the multiprocessors (SMs) of each of its devices that a communication occupies while
/// its bytes flow. Concurrent kernels run on the rest.
struct HeldMultiprocessors {
  double share = 0;
  Seconds time{};  ///< Time on idle links; at least this where links are shared.
};

class CostModel {
 public:
  virtual ~CostModel() = default;

  /// Time of `kernel` alone on an idle device of that type.
  virtual Seconds kernel_time(const Kernel& kernel, DeviceTypeId type) const = 0;

  /// Time of one operation among `devices` (transfer: sender, receiver; operation with the host:
  /// the one device) on idle links.
  /// \return kInfeasible where two of them have no route.
  virtual Result<Seconds> communication_time(program::CollectiveKind kind, Bytes bytes,
                                             const std::vector<DeviceId>& devices) const = 0;

  /// The multiprocessors that the operation occupies, with the same arguments. Zero where that is
  /// not modelled.
  virtual Result<HeldMultiprocessors> held(program::CollectiveKind /*kind*/, Bytes /*bytes*/,
                                           const std::vector<DeviceId>& /*devices*/) const {
    return HeldMultiprocessors{};
  }

  /// The equivalence class of a list of devices. Lists have the same number exactly if their
  /// operations take the same time at any size because the routes among them are equivalent.
  virtual std::int32_t group_kind(const std::vector<DeviceId>& devices) const = 0;

  /// The equivalence class of a crowd: groups of equally many devices that start an operation at
  /// once. Crowds have the same number exactly if their groups are equivalent and placed
  /// equivalently relative to each other.
  virtual std::int32_t crowd_kind(const std::vector<std::vector<DeviceId>>& groups) const = 0;

  /// Time that the slowest group of a crowd takes beyond communication_time, because other groups
  /// of the crowd use the same links. `crowd`: a number from crowd_kind.
  /// \return kInfeasible where two devices of a group have no route.
  virtual Result<Seconds> sharing_time(program::CollectiveKind kind, Bytes bytes,
                                       std::int32_t crowd) const = 0;

  /// As communication_time, but its run time hardly grows with the devices: a few members stand for
  /// all of a large group. For ranking.
  /// \pre the devices' nodes are of one kind and have equally many of the devices each
  virtual Result<Seconds> approximate_time(program::CollectiveKind kind, Bytes bytes,
                                           const std::vector<DeviceId>& devices) const = 0;

  /// Time of an exchange (program::CollectiveKind::kExchange) of these transfers on idle links.
  /// \pre from != to for every transfer
  /// \return kInfeasible where two have no route.
  virtual Result<Seconds> exchange_time(const std::vector<DeviceTransfer>& transfers) const = 0;

  /// Simulated time of `program`, where all concurrent communication shares the links.
  /// \pre the Program is verified
  /// \return kInvalidInput if it does not fit the cluster, kInfeasible where two devices have no
  ///     route.
  virtual Result<Seconds> program_time(const program::Program& program) const = 0;

  /// Bytes that all communication of `program` puts on each link that it uses, by ascending LinkId.
  /// Precondition and errors as for program_time.
  virtual Result<std::vector<LinkBytes>> link_bytes(const program::Program& program) const = 0;
};

}  // namespace foreshard
