/// \file
/// SLURM's host lists: "tux[0-3,12,018-020],login1" and what they stand for. A custom fabric's
/// cables name their ends in the same way: "node[0-19]/nic[0-7]". Source: SLURM's scontrol(1) "show
/// hostnames" and topology.conf(5): ranges keep their zeros in front; several brackets in one name
/// combine, the last running fastest.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace foreshard::internal {

/// Letters, digits, dashes, dots and underscores.
bool is_host_name(std::string_view name);

/// The names, or what is wrong (more than `most` names, too). The caller checks the characters of
/// the names.
std::variant<std::vector<std::string>, std::string> expand_hostlist(std::string_view text,
                                                                    std::size_t most);

}  // namespace foreshard::internal
