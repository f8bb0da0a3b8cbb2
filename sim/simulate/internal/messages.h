/// \file
/// Writes collectives message by message into an engine's workload, and warns where their times
/// differ from one activity per collective (Granularity::kFlat).
///
/// The messages of a form (strategies/comm/collective.h) carry its bytes: over the links of their
/// routes, at the part of the bandwidth that the form's protocol can use, and no faster than their
/// sender's channels copy. The delay before bytes flow at their full rate (the latencies of all
/// steps, start-up, the filling of pipelines: FlatCollective::delay) passes before the first
/// message, as it passes before the bytes of the flat form. So both take the same time on idle
/// links, except for forms whose rounds wait for one another (FlatCollective::overlaps_rounds).
///
/// Sums and copies made by switches are no messages between members: they are a flow on each link
/// that the flat form loads.
///
/// Not modelled: messages of an exchange that catch up after a delay; messages of a chain or tree,
/// which forward data while it arrives, cannot be faster than the messages that bring it;
/// multiprocessors that a collective holds (the flat form slows concurrent kernels).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/result.h"

#include "sim/engine/workload.h"
#include "sim/simulate/forms.h"
#include "sim/simulate/simulate.h"

namespace foreshard::sim::internal {

/// One operation of one group of devices.
struct Operation {
  program::CollectiveKind kind = program::CollectiveKind::kAllReduce;
  comm::Participants group;
  comm::FlatCollective form;  ///< Form with the links of this group.
  Bytes bytes;
};
Operation operation_of(const ClusterView& cluster, const program::Program& program,
                       const Communicators& communicators, const CommunicatorForms& forms,
                       std::size_t communicator, Bytes bytes);

class MessageWriter {
 public:
  /// \param links  link of the cluster -> its resource. The workload must outlive the writer.
  MessageWriter(engine::Workload& workload, std::vector<engine::ResourceId> links);

  using Key = std::pair<std::size_t, double>;
  /// Adds the operation's flows, which begin when `begins` is done, and an activity that waits for
  /// all of them. The caller accounts for the delay before bytes flow, as a latency of `begins`.
  /// \param key  operations with equal keys are equal (their groups have channels of their own).
  /// \param operation  called for the first operation of each key; its group has several members,
  ///     or it is an operation with the host
  /// \return That activity; kInfeasible if there is no route, kUnsupported if there are too many
  ///     messages to write out.
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
    /// Earlier flows; empty: the flow waits for the operation's begin.
    std::vector<std::int32_t> after;
    bool is_last = true;  ///< Whether nothing but the operation's end waits for it.
  };
  using Script = std::vector<Flow>;
  /// Resources with their weights, and the number of connections that makes flows share by bytes
  /// (engines share by the largest weight: workload.h).
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

/// The time of the operation on idle links, message by message.
/// \return The errors of MessageWriter::write.
Result<Seconds> time_by_messages(const Operation& operation);

/// Nothing for kFlat. Otherwise:
///  - SimGrid cannot do it in another way, if it is the engine;
///  - kernels gain time, since messages hold no multiprocessors;
///  - the forms of the step whose time on idle links differs, each with both times.
///
/// Cost: the messages of one operation of each such form.
/// \return The errors of MessageWriter::write.
Result<std::vector<Warning>> granularity_warnings(const ClusterView& cluster,
                                                  const program::Program& program,
                                                  const Communicators& communicators,
                                                  const CommunicatorForms& forms,
                                                  const SimulateOptions& options);

}  // namespace foreshard::sim::internal
