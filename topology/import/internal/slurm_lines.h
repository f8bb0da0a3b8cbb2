/// \file
/// SLURM's topology.conf, and topology.yaml as the lines that topology.conf would have:
///
///     - topology: one                       SwitchName=s0 Nodes=tux[0-1]
///       tree:                               SwitchName=top Switches=s0,s1
///         switches:                         ...
///           - switch: s0
///             nodes: tux[0-1]
///
/// Source: topology.conf(5), topology.yaml(5).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace foreshard::internal {

struct SlurmLine {
  std::int64_t number = 0;  ///< Line number of its first part.
  std::string text;
};

/// The lines of `text` without comments; a backslash at the end joins the next line. Empty lines
/// are left out.
std::vector<SlurmLine> slurm_lines(std::string_view text);

/// Whether the text is a topology.yaml: its first entry is "- topology: NAME".
bool is_slurm_yaml(std::string_view text);

struct SlurmTopology {
  std::vector<SlurmLine> lines;
  std::string name;
  std::vector<std::string> others;  ///< Topologies that were not chosen.
};
struct SlurmFault {
  std::int64_t line = 0;
  std::string why;
};
/// The first topology that is marked cluster_default, else the first one. Only block YAML (indented
/// lines) and lists in brackets are read.
std::variant<SlurmTopology, SlurmFault> slurm_yaml(std::string_view text);

}  // namespace foreshard::internal
