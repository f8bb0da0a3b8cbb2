/// \file
/// NCCL's topology XML, element by element (nccl_xml.cc), and what joins its parts once all are
/// known (nccl_links.cc).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/yaml/loader.h"

#include "topology/hardware.h"
#include "topology/import/import.h"
#include "topology/import/internal/host_tree.h"
#include "topology/import/internal/readers.h"
#include "topology/internal/words.h"

namespace foreshard::internal {

// A small XML document as a tree with line numbers, by expat. Only elements and attributes: text
// between elements, DOCTYPE (and with it every entity of one's own), and documents deeper or
// larger than any topology file are refused.

struct XmlElement {
  std::string name;
  std::int64_t line = 0;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlElement> children;

  /// \return null if it is not there.
  const std::string* attribute(std::string_view key) const;
};

struct XmlFault {
  std::int64_t line = 0;
  std::string why;
};

/// The root element, or what is wrong and where.
std::variant<XmlElement, XmlFault> parse_xml(std::string_view text);

/// The rate of a NIC where the file says 0 or nothing, as NCCL takes it.
constexpr std::int64_t kUnknownMbits = 10'000;
/// The source of that rate.
constexpr const char* kAsNccl =
    "what NCCL takes where an adapter tells no speed (src/graph/topo.cc)";

/// A GPU of the file.
struct NcclGpu {
  std::size_t part = 0;
  std::size_t host = 0;
  std::size_t socket = 0;
  std::int64_t line = 0;
  std::string bus;
  std::string element;  ///< Prefix of messages: "<gpu>: ".
  std::string pci_id;
  std::string gcn;  ///< AMD's instruction set, in RCCL's files.
  std::optional<std::int64_t> dev;
  std::optional<std::int64_t> sm;
  bool by_class = false;                 // there is no <gpu>
  std::vector<const XmlElement*> links;  // nvlink, xgmi and c2c
};

struct NcclSocket {
  std::size_t part = 0;
  std::size_t host = 0;
  BytesPerSecond bandwidth;
};

class NcclXmlReader {
 public:
  NcclXmlReader(const ImportRequest& request, const Hardware& hardware)
      : request_(request), hardware_(hardware) {}

  /// The first fault found, or nothing.
  Status read(const XmlElement& root);
  /// The NVLinks, once the device is known.
  Status join(const Defaults& defaults);
  Result<std::string> device(yaml::Loader& loader);
  Status fault_in_device(const DeviceType& type) const;

  HostTree tree;
  std::vector<std::string> remarks;
  std::size_t hosts() const { return hosts_.size(); }
  std::size_t gpus_of(std::size_t host) const {
    return static_cast<std::size_t>(std::ranges::count(gpus_, host, &NcclGpu::host));
  }

 private:
  Error error(const XmlElement& at, const std::string& why) const {
    return import_error(request_, at.line, "<" + shown(at.name) + ">: " + why);
  }
  void remark(const XmlElement& at, const std::string& what) {
    remarks.push_back("line " + std::to_string(at.line) + ", <" + shown(at.name) + ">: " + what);
  }
  /// A whole number in [lowest, highest]; `fallback` where the attribute is missing or empty.
  Result<std::int64_t> number(const XmlElement& at, std::string_view key, std::int64_t lowest,
                              std::int64_t highest, std::optional<std::int64_t> fallback) const;
  Result<BytesPerSecond> pcie(const XmlElement& at);
  void unknown(const XmlElement& element);

  Status read_cpu(const XmlElement& cpu);
  Status read_pci(const XmlElement& pci, std::size_t parent, std::size_t socket);
  Status read_leaf(const XmlElement& pci, std::size_t parent, std::size_t socket,
                   BytesPerSecond up);
  Status read_gpu(const XmlElement& gpu, const XmlElement& pci, std::size_t parent,
                  std::size_t socket, BytesPerSecond up);
  Status read_net(const XmlElement& net, std::size_t parent, BytesPerSecond up, bool on_cpu);
  Status read_nics(const XmlElement& pci, std::size_t parent, BytesPerSecond up);
  Error no_gpu(const XmlElement& root) const;
  Status number_gpus();
  Status join_switches();
  void give_usual_links(const Defaults& defaults);
  Error unknown_device(const NcclGpu& gpu, yaml::Loader& loader) const;
  Status join_nvlinks(
      const NcclGpu& gpu, BytesPerSecond rate, std::map<std::size_t, std::int64_t>& to_switch,
      std::map<std::pair<std::size_t, std::size_t>, std::pair<std::int64_t, std::int64_t>>& to_gpu);

  const ImportRequest& request_;
  const Hardware& hardware_;
  std::map<std::string, std::size_t> hosts_;  // by host_hash
  std::set<std::pair<std::size_t, std::int64_t>> numa_;
  std::vector<NcclSocket> sockets_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> buses_;  // (host, busid) -> part
  std::vector<NcclGpu> gpus_;
  struct Net {
    std::size_t part;
    std::string name;
    bool on_cpu;
  };
  std::map<std::pair<std::size_t, std::int64_t>, Net> nets_;  // by (host, dev)
  std::vector<std::pair<std::size_t, const XmlElement*>> pcilinks_;
  std::vector<std::size_t> nics_by_class_;
  std::vector<const XmlElement*> without_class_;
  bool rccl_ = false;
  std::size_t host_ = 0;  // being read
};

}  // namespace foreshard::internal
