/// \file
/// One host as a reader found it: a forest of sockets, PCIe switches, GPUs and NICs, and the links
/// across it. `node_of` turns it into a NodeConfig of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/yaml/loader.h"

#include "topology/hardware.h"
#include "topology/node_config.h"

namespace foreshard::internal {

struct HostTree {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  enum class Kind : std::uint8_t { kGpu, kNic, kSwitch, kSocket, kNvSwitch };

  struct HostPart {
    Kind kind = Kind::kSwitch;
    std::int64_t index = 0;      ///< Number of a GPU or NIC: distinct, from 0 on.
    std::size_t parent = kNone;  ///< Index in `parts`, lower than this part's.
    BytesPerSecond up{};         ///< PCIe to the parent, nominal.
    BytesPerSecond port{};       ///< NIC: rate of its port, nominal.
  };
  struct Link {  ///< Anything but the PCIe link to the parent; nominal.
    std::size_t a = 0;
    std::size_t b = 0;
    WiringLinkKind kind = WiringLinkKind::kNvLink;
    BytesPerSecond bandwidth;
  };

  std::vector<HostPart> parts;
  std::vector<Link> links;
  /// Where the rates of a kind of link come from if the file does not give all of them: the usual
  /// machine, the command line. Empty: the file.
  std::string ports_from{};
  std::string nvlinks_from{};
  std::string bridges_from{};  ///< Links between sockets.

  std::size_t add(const HostPart& part);
  std::int64_t count(Kind kind) const;
};

/// Defaults for what the file does not say.
struct Defaults {
  yaml::Ref<DeviceType> device;
  HardwareDevice hardware;  ///< Empty if the device has no entry there.
  NodeConfig machine;       ///< configs/nodes/by-device/, or one of defaults.
  bool has_machine = false;

  /// For messages: "the usual machine of H100-SXM".
  std::string usual() const { return "the usual machine of " + device.name; }
};

/// Value of `ports_from` for a rate that the command line gives.
inline constexpr const char* kLinkRate = "--link-rate";

/// \return kInvalidInput if there is no such device.
Result<Defaults> defaults_of(const std::string& device, const Hardware& hardware,
                             yaml::Loader& loader, std::vector<std::string>& remarks);

/// The host link by link. Switches and sockets that lead to no GPU and no NIC are left out; parts
/// are numbered by the first GPU (else NIC) below them.
WiringConfig wiring_of(const HostTree& tree);

/// The host as a few regular keys (nvlink, pcie, nics) if they give exactly the same links, else as
/// its wiring.
/// \param source  the `source:` of each rate that the file says.
NodeConfig node_of(const HostTree& tree, const Defaults& defaults, const std::string& source);

/// Adds the NVLinks of the usual machine, GPU by GPU (usual.cc); a mesh fits only a host with as
/// many GPUs as the usual machine.
/// \return whether they could be added.
bool add_usual_nvlinks(HostTree& tree, const Defaults& defaults);

/// Adds warnings about a host that falls short of the usual machine: far slower PCIe links, slower
/// or missing NVLink, a part of an NVLink domain (usual.cc). Doubts that need no usual machine are
/// found by plausibility.h.
void add_doubts(const HostTree& tree, const Defaults& defaults, const HardwareLimits& limits,
                std::vector<std::string>& remarks);

/// Nominal rate of one direction.
/// \param transfers  GT/s of a lane.
/// Source: PCI-SIG base specifications: 8b/10b coding up to 5 GT/s, 128b/130b up to 32 GT/s, flits
/// of 242 in 256 bytes at 64 GT/s.
BytesPerSecond pcie_rate(double transfers, std::int64_t lanes);

}  // namespace foreshard::internal
