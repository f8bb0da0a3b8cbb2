/// \file
/// The invariants of a Program. Whatever makes or reads a Program calls `verify` once; whatever
/// comes later relies on it.
///
///  1. The mesh has 1 to 16 axes of size >= 1, with distinct names, and at most 2^24 ranks.
///  2. `device_of_rank` is empty or names one distinct device >= 0 per rank.
///  3. There are 1 to 256 streams, blocks and roles at least one each; names of streams, blocks and
///     roles are distinct and not empty; all names are printable UTF-8.
///  4. `launch_time`, `launch_time_of_rank`, all `HostWork` times and totals are finite and >= 0.
///     `launch_time_of_rank` is empty or has one time per rank, the longest of which is
///     `launch_time`.
///  5. Every rank has exactly one role; ranks of a role are ascending, at least one.
///  6. A task's `after` names earlier tasks of its block, not Allocates. Allocate and HostWork have
///     none.
///  7. Kernels and communication name a stream that exists; Sync, HostWork, Allocate and Free name
///     none or one that exists.
///  8. Sizes of a kernel are >= 1 (a Pass may have 0 rows); bytes of communication, buffers and
///     static memory are finite and >= 0.
///  9. `optimizer` is set on kernels only; `launches` is finite and >= 0, and differs from 1 on
///     kernels and communication only.
/// 10. A block has a task that runs (is not Allocate or Free); a Free without `after` has such a
///     task before it.
/// 11. A call names a block that exists, repeat >= 1, chunk >= 0, micro_batch >= 0, and its layers
///     are within +-2^30; its `after` names earlier calls and tasks of these, not Allocates.
/// 12. AxisGroup: axes that exist, ascending, at least one (but see 22); coordinates ascending,
///     within the axis, and only where there is exactly one axis. AxisPeer: an axis that exists and
///     a coordinate within it.
/// 13. RankGroups: lists of ranks that exist, ascending, disjoint, not empty.
/// 14. send and receive, and only they, name an AxisPeer. A role runs at most
///     kMaxInstancesPerRole tasks, all repetitions counted.
/// 15. Buffers balance: each Free gives back a live buffer, no buffer is allocated while it is
///     live, and none is left at the end of the step.
/// 16. A rank takes part in the groups that its role's communication names, and does not send to
///     itself.
/// 17. Members of a group make the same operations: for each tag the same number of them, with the
///     same kind, bytes, dtype, transfers, roots and routing. Each send meets a receive of the same
///     bytes and dtype.
/// 18. No deadlock: the step ends when every rank issues in order, every stream runs in order, and
///     an operation waits for all its members (program.h, rules 1 to 5).
/// 19. An exchange, and nothing else, has transfers: each is between two ranks of one group and has
///     more than 0 bytes; every group has at least one; they add up to the operation's bytes.
/// 20. Only a broadcast has `roots`: none, or one rank in each group.
/// 21. A token_exchange, and nothing else, has a `routing`: equal groups of experts, and no more
///     experts per token than its groups have.
/// 22. An operation with the host (to_host, from_host, on_host), and nothing else, has an AxisGroup
///     without axes.
/// 23. Every reader waits for its conversion. A conversion is communication of purpose tensor,
///     context or expert on another stream than the first. In a block that reads tensors, a later
///     task of the block other than a Free waits for it; or else its call is not repeated, and the
///     next call of the role with the same chunk and micro-batch whose block reads tensors, if
///     there is one, waits for it. A block reads tensors if it sends, or runs a kernel other than
///     the optimizer's on the first stream.
///
/// Cost of 15 to 18: they are checked on classes of ranks that behave alike (roles, split where
/// members of a group differ). Finding the classes takes O(ranks x groups), checking them
/// O(instances of the classes).
#pragma once

#include "base/result.h"

#include "strategies/program/ir/program.h"

namespace foreshard::program {

/// Finds the first violation.
/// \return kInvalidInput, with the number of the invariant and the place; kUnsupported if ranks
///     differ too much: checking 17 and 18 would take more than 2^27 task instances.
Status verify(const Program& program);

}  // namespace foreshard::program
