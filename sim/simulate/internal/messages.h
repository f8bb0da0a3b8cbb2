/// \file
/// Collectives message by message: what an engine is told of them.
///
/// The messages of a form (strategies/comm/collective.h) carry its bytes: over the links of their
/// routes, at the part of the bandwidth that the form's protocol can use, and no faster than their
/// sender's channels copy. What passes before bytes flow at their full rate (the latencies of all
/// steps, start-up, the filling of pipelines: FlatCollective::delay) passes before the first
/// message, as it does before the flat form's bytes. So both take the same time on idle links, but
/// for forms whose rounds wait for one another (FlatCollective::overlaps_rounds).
///
/// Sums and copies that switches make are no messages between members: they are a flow on each link
/// that the flat form loads.
///
/// Not modelled: that messages of an exchange catch up after they were held up; that messages of a
/// chain or tree, which pass on what arrives while it arrives,
/// cannot be faster than those that bring it; multiprocessors that a collective holds (the flat
/// form slows kernels beside it).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/result.h"

#include "sim/engine/workload.h"
#include "sim/simulate/forms.h"

namespace foreshard::sim::internal {

/// One operation of one group of devices.
struct Operation {
  program::CollectiveKind kind = program::CollectiveKind::kAllReduce;
  comm::Participants group;
  comm::FlatCollective form;  ///< With the links of this group.
  Bytes bytes;
};
Operation operation_of(const ClusterView& cluster, const program::Program& program,
                       const Communicators& communicators, const CommunicatorForms& forms,
                       std::size_t communicator, Bytes bytes);

class MessageWriter {
 public:
  /// \param links  per link of the cluster, its resource. The workload must outlive the writer.
  MessageWriter(engine::Workload& workload, std::vector<engine::ResourceId> links);

  using Key = std::pair<std::size_t, double>;
  /// Adds the operation's flows, which begin when `begins` is done, and an activity that waits for
  /// all of them. What passes before bytes flow is the caller's matter: a latency of `begins`.
  /// \param key  operations with equal keys are equal (their groups have channels of their own).
  /// \param operation  called for the first one of each key; its group has several members, or
  ///     it is one with the host
  /// \return that activity; kInfeasible where there is no route, kUnsupported if the messages are
  ///     too many to be written out.
  template <class MakeOperation>
  Result<engine::ActivityId> write(const Key& key, engine::ActivityId begins,
                                   MakeOperation&& operation) {
    auto known = scripts_.find(key);
    if (known == scripts_.end()) {
      FORESHARD_ASSIGN(auto script, script_of(operation()));
      known = scripts_.emplace(key, std::move(script)).first;
    }
    return write(known->second, begins);
  }

 private:
  /// An operation's flows, ready to be added again and again.
  struct Flow {
    engine::ShapeId shape;
    double work = 0;
    std::vector<std::int32_t> after;  ///< Earlier flows; empty: the operation's begin.
    bool is_last = true;              ///< Nothing waits for it but the end.
  };
  using Script = std::vector<Flow>;
  /// Resources with their weights, and the connections with which flows share by bytes: engines
  /// share by the largest weight (workload.h).
  using Way = std::pair<std::vector<std::pair<engine::ResourceId, double>>, double>;

  Result<Script> script_of(const Operation& operation);
  Result<Script> messages_of(const Operation& operation);
  Script copy_of(const Operation& operation);
  Script switch_flows_of(const Operation& operation);
  engine::ActivityId write(const Script& script, engine::ActivityId begins);
  engine::ShapeId shape_of(Way way);

  engine::Workload& workload_;
  std::vector<engine::ResourceId> links_;
  engine::ShapeId nothing_;
  std::map<Key, Script> scripts_;
  std::map<Way, engine::ShapeId> shapes_;
};

/// What the operation takes on idle links, message by message.
/// \return as MessageWriter::write.
Result<Seconds> time_by_messages(const Operation& operation);

}  // namespace foreshard::sim::internal
