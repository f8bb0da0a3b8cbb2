/// \file
/// Machines and clusters as other tools describe them, read into our own configuration:
///
///     Result<Imported> found = import_topology({.text = xml, .name = "topo.xml"}, loader);
///     for (const auto& remark : found->remarks) ...      // what the file did not say
///     write_file("node.yaml", to_yaml(*found));
///
/// To add a format: its .cc, its declaration in internal/readers.h, one line in the table of
/// import.cc, a fuzz target. A format that describes one host gives a NodeConfig, one that
/// describes several a ClusterConfig. What a file does not say (efficiencies, latencies, the host's
/// launch time) comes from the usual machine of the device, configs/nodes/by-device/, and each such
/// choice is a remark.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/yaml/loader.h"

#include "topology/cluster_config.h"
#include "topology/node_config.h"

namespace foreshard {

struct ImportRequest {
  std::string_view text;
  std::string name;      ///< Stands for the file in messages and in `source:`.
  std::string format{};  ///< A name of `import_formats`; empty: guessed from the text.
  std::string device{};  ///< A catalogue entry, for files that do not name their devices.
  std::string node{};    ///< A catalogue entry: the machine of files that list host names only.
  /// Nominal rate of network links (NICs, cables) for which the file gives no rate.
  std::optional<BytesPerSecond> link_rate{};
};

struct Imported {
  std::variant<NodeConfig, ClusterConfig> what;
  std::string format;
  std::string name;  ///< Name of the file.
  /// What is implausible ("warning: "), then what was assumed or left out.
  std::vector<std::string> remarks;
};

struct ImportFormat {
  std::string_view name;
  std::string_view summary;
  bool (*recognises)(std::string_view text);
  Result<Imported> (*read)(const ImportRequest& request, yaml::Loader& loader);
};

/// All formats, in the order in which they are tried on a text.
std::span<const ImportFormat> import_formats();
/// The format of `text`, in UTF-8 or (with a byte-order mark) UTF-16; null if none is known.
const ImportFormat* import_format_of(std::string_view text);

/// \param loader  holds the catalogue in which devices and machines are looked up.
/// \return kInvalidInput with file, line and element or word of what is wrong; if no format knows
///     the text; or if what it describes cannot be built.
Result<Imported> import_topology(const ImportRequest& request, yaml::Loader& loader);

/// The result as a YAML file of our own: `foreshard check` accepts it, and `build_cluster` gives
/// the links described.
std::string to_yaml(const Imported& imported);

}  // namespace foreshard
