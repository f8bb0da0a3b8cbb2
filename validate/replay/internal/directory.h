/// \file
/// All communicators of a job. Every rank derives the same numbers from the Program: communicators
/// are ordered by role, then first use, then rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"

#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/program.h"

namespace foreshard::replay::internal {

class Directory {
 public:
  struct Entry {
    std::vector<std::int32_t> members{};  ///< Ascending.
    std::string name{};
  };

  /// \param program, expander  must outlive it.
  /// \pre verify(program) finds nothing.
  /// \return errors of plan_rank.
  static Result<Directory> of(const program::Program& program, const program::Expander& expander);

  const std::vector<Entry>& entries() const { return entries_; }

  /// Number of the set of ranks on which a collective of `rank` with this group runs. Operations
  /// are counted per set.
  /// \pre the Program uses the group in a collective, and `rank` takes part.
  std::int32_t set_of(const program::Group& group, std::int32_t rank) const;
  /// Number of a communicator: an index into entries().
  /// \pre the Program runs such an operation.
  std::int64_t collective(std::int32_t set, std::int32_t stream) const;
  std::int64_t transfer(std::int32_t from, std::int32_t to, std::string_view tag) const;

 private:
  using Groups = std::map<program::Group, std::vector<std::int32_t>>;

  Directory() = default;
  void learn(const program::Program& program, const program::Group& group);
  void enter_collective(const program::Program& program, const program::Role& role,
                        const program::Task& task);
  Status enter_transfer(const program::Program& program, const program::Role& role,
                        const program::Task& task);
  Status compare_orders(const program::Program& program, const program::Expander& expander) const;

  std::vector<Entry> entries_;
  Groups sets_of_group_;  // group -> rank -> set; -1: the rank takes no part
  std::map<std::vector<std::int32_t>, std::int32_t> sets_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> collectives_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::string>, std::int64_t> transfers_;
};

}  // namespace foreshard::replay::internal
