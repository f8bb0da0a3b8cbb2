/// \file
/// Which ranks take part in a communication: the mesh arithmetic of `Group`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/program/ir/program.h"

namespace foreshard::program {

/// Coordinate of `rank` on mesh axis `axis`.
/// \pre both in range.
std::int64_t coordinate_of(const Program& program, std::int32_t rank, std::int32_t axis);

/// The rank with `rank`'s coordinates, except `coordinate` on `axis`.
/// \pre all in range.
std::int32_t with_coordinate(const Program& program, std::int32_t rank, std::int32_t axis,
                             std::int64_t coordinate);

/// The ranks of the operation that `rank` takes part in, ascending. For an AxisPeer: `rank` and its
/// peer, ascending. Empty if `rank` takes part in none (its coordinate is not listed, or no list
/// holds it).
/// \pre indices are in range (verify).
std::vector<std::int32_t> members_of(const Program& program, const Group& group, std::int32_t rank);

/// Per rank, a label that the ranks of one operation share (one of the group's ranks, or the rank
/// that its coordinates begin at); -1 if it takes part in none. Cost: O(ranks), where members_of
/// rank by rank would be O(ranks x groups).
/// \pre `group` is not an AxisPeer; indices are in range.
std::vector<std::int32_t> labels_of(const Program& program, const Group& group);

/// The number of ranks that members_of() would list.
/// \pre as for members_of.
std::int64_t size_of(const Program& program, const Group& group, std::int32_t rank);

/// The other end of a transfer; nothing if `group` is not an AxisPeer.
std::optional<std::int32_t> peer_of(const Program& program, const Group& group, std::int32_t rank);

/// The tag that matches operations (rule 5 of program.h): the communication's, else the task's
/// name.
/// \pre the task is a communication.
inline const std::string& tag_of(const Task& task) {
  const std::string& tag = std::get<Communication>(task.body).tag;
  return tag.empty() ? task.name : tag;
}

// Lists of ranks as text: "0-127", "0,8,9", "0-1016:8" (from 0 to 1016 in steps of 8), "7-0:-1".

/// The list as text. From the left, each range takes as many members as fit; fewer than three are
/// written one by one.
std::string write_ranges(const std::vector<std::int32_t>& list);

/// The inverse of write_ranges; it keeps the order.
/// \return kInvalidInput for other text, for a number of 2^31 or more, and for more than `limit`
///     members.
Result<std::vector<std::int32_t>> read_ranges(std::string_view text, std::size_t limit);

}  // namespace foreshard::program
