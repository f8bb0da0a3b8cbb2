/// \file
/// What things cost: the interface that reshard and search ask. `sim/` implements it, so
/// strategies/ stays independent of how times are modelled.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"

namespace foreshard {

/// What one device sends another.
struct DeviceTransfer {
  DeviceId from;
  DeviceId to;
  Bytes bytes{};        ///< Invariant: > 0.
  double messages = 1;  ///< In how many messages. Invariant: >= 1.
};

/// What crosses a link.
struct LinkBytes {
  LinkId link;
  Bytes bytes{};
};

/// What communication holds of the multiprocessors of each of its devices, while its bytes flow:
/// kernels beside it run on the rest.
struct HeldMultiprocessors {
  double share = 0;
  Seconds time{};  ///< On idle links; no less where they are shared.
};

class CostModel {
 public:
  virtual ~CostModel() = default;

  /// Time of `kernel` alone on an idle device of that type.
  virtual Seconds kernel_time(const Kernel& kernel, DeviceTypeId type) const = 0;

  /// Time of one operation among `devices` (of a transfer: sender, receiver; of an operation with
  /// the host: the one) on idle links.
  /// \return kInfeasible where two of them have no route.
  virtual Result<Seconds> communication_time(program::CollectiveKind kind, Bytes bytes,
                                             const std::vector<DeviceId>& devices) const = 0;

  /// Likewise, what it holds beside them. Nothing where that is not modelled.
  virtual Result<HeldMultiprocessors> held(program::CollectiveKind /*kind*/, Bytes /*bytes*/,
                                           const std::vector<DeviceId>& /*devices*/) const {
    return HeldMultiprocessors{};
  }

  /// A number that lists of devices share whose operations take the same time, whatever their size,
  /// because the routes among them are alike. Others have other numbers.
  virtual std::int32_t group_kind(const std::vector<DeviceId>& devices) const = 0;

  /// A number that crowds (groups of as many devices each that begin an operation at once) share
  /// whose groups are alike and lie alike to each other. Others have other numbers.
  virtual std::int32_t crowd_kind(const std::vector<std::vector<DeviceId>>& groups) const = 0;

  /// What the slowest group of such a crowd takes longer than communication_time, because others
  /// of it use the same links.
  /// \return kInfeasible where two devices of a group have no route.
  virtual Result<Seconds> sharing_time(program::CollectiveKind kind, Bytes bytes,
                                       std::int32_t crowd) const = 0;

  /// As communication_time, in time that hardly grows with the devices, for ranking: of large
  /// groups a few members stand for all.
  /// \pre their nodes are alike and have as many of them each.
  virtual Result<Seconds> approximate_time(program::CollectiveKind kind, Bytes bytes,
                                           const std::vector<DeviceId>& devices) const = 0;

  /// Time of an exchange (program::CollectiveKind::kExchange) of these transfers on idle links.
  /// \pre from != to.
  /// \return kInfeasible where two have no route.
  virtual Result<Seconds> exchange_time(const std::vector<DeviceTransfer>& transfers) const = 0;

  /// What `program` takes, all that runs at the same time sharing the links: simulated.
  /// \pre the Program is verified.
  /// \return kInvalidInput if it does not fit the cluster, kInfeasible where two devices have no
  ///     route.
  virtual Result<Seconds> program_time(const program::Program& program) const = 0;

  /// What all communication of `program` puts on each link that it uses, ascending. As above.
  virtual Result<std::vector<LinkBytes>> link_bytes(const program::Program& program) const = 0;
};

}  // namespace foreshard
