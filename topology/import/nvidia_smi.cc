// Reads the table of `nvidia-smi topo -m`, a row of import.cc. It has no rates: those come from the
// device and its usual machine. A table that is cut short is an error with its line.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/limits.h"

#include "topology/import/internal/host_tree.h"
#include "topology/import/internal/readers.h"
#include "topology/internal/words.h"

// Source of the words: the legend that `nvidia-smi topo -m` prints itself.
namespace foreshard::internal {
namespace {

using Kind = HostTree::Kind;

constexpr std::int64_t kMostLinksOfCell = 1024;

/// What the path between two devices crosses, from the nearest to the farthest.
enum class PcieDistance : std::uint8_t { kSelf, kPix, kPxb, kPhb, kNode, kSys, kHidden };

struct Cell {
  PcieDistance near = PcieDistance::kSys;
  std::int64_t nvlinks = 0;  ///< If any, `near` is kHidden: NVLink hides the PCIe path.
};

std::optional<Cell> cell_of(std::string_view word) {
  static constexpr std::pair<std::string_view, PcieDistance> kWords[] = {
      {"X", PcieDistance::kSelf},  {"PIX", PcieDistance::kPix},   {"PXB", PcieDistance::kPxb},
      {"PHB", PcieDistance::kPhb}, {"NODE", PcieDistance::kNode}, {"SYS", PcieDistance::kSys},
      {"SOC", PcieDistance::kSys}};
  for (const auto& [text, near] : kWords)
    if (word == text) return Cell{near, 0};
  if (!word.starts_with("NV")) return std::nullopt;
  const auto links = whole_number(word.substr(2));
  if (!links || *links < 1 || *links > kMostLinksOfCell) return std::nullopt;
  return Cell{PcieDistance::kHidden, *links};
}

/// The position after an escape sequence that begins at `at`: "ESC [ 4 m", or "[4m" whose ESC was
/// lost on the way. `at` if none begins there.
std::size_t behind_escape(std::string_view text, std::size_t at) {
  const bool escape = text[at] == '\x1b';
  std::size_t i = at + (escape ? 1 : 0);
  if (i >= text.size() || text[i] != '[') return escape ? i : at;
  ++i;
  const std::size_t end = text.find_first_not_of("0123456789;?", i);
  if (escape) return end == std::string_view::npos ? text.size() : end + 1;
  return end != std::string_view::npos && end > i && text[end] == 'm' ? end + 1 : at;
}

/// The text without terminal escapes, and without marks of comments and quotes before a line.
std::string plain(std::string_view text) {
  std::string result;
  bool begins = true;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t end = behind_escape(text, i); end > i) {
      i = end;
      continue;
    }
    const char c = text[i++];
    const bool mark = begins && (c == '#' || c == '>' || c == '/' || c == '|');
    begins = c == '\n' || (begins && (mark || c == ' ' || c == '\t'));
    if (!mark) result += c;
  }
  return result;
}

struct Device {
  std::string name;
  bool gpu = false;
  std::string numa;  ///< NUMA affinity, else CPU affinity; empty if the table has neither.
};

struct Matrix {
  std::vector<Device> devices;  ///< One per column.
  std::vector<std::vector<Cell>> cells;
  std::vector<std::int64_t> lines;   ///< Line of each row; 0 if it is missing.
  std::vector<std::string> missing;  ///< NICs whose rows are missing.
};

bool is_gpu(std::string_view word) {
  return word.starts_with("GPU") && word.size() > 3 && whole_number(word.substr(3)).has_value();
}

/// The columns, if `words` are the header; else none.
std::vector<Device> header_of(const std::vector<std::string_view>& words) {
  std::vector<Device> devices;
  if (words.empty() || !is_gpu(words.front())) return devices;
  if (words.size() > 1 && cell_of(words[1])) return devices;  // a row
  for (const auto word : words) {
    if (word == "CPU" || word == "NUMA") break;
    devices.push_back({std::string(word), is_gpu(word), ""});
  }
  return devices;
}

class MatrixReader {
 public:
  explicit MatrixReader(const ImportRequest& request) : request_(request) {}

  Result<Matrix> read();

 private:
  Status read_row(Matrix& matrix, std::size_t row, const std::vector<std::string_view>& words,
                  std::int64_t line) const;
  Status complete(Matrix& matrix, std::int64_t last_line) const;
  Status fault_in(const Matrix& matrix) const;

  const ImportRequest& request_;
};

Result<Matrix> MatrixReader::read() {
  const std::string text = plain(request_.text);
  Matrix matrix;
  std::int64_t line = 0;
  std::int64_t last = 0;  // last line of the table
  std::size_t rows = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto words = words_of(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    ++line;
    if (matrix.devices.empty()) {
      matrix.devices = header_of(words);
      matrix.cells.resize(matrix.devices.size());
      matrix.lines.resize(matrix.devices.size());
      last = line;
      if (const std::size_t most = limits::raised(limits::kColumns); matrix.devices.size() > most)
        return import_error(request_, line,
                            "more than " + std::to_string(most) + " devices; " + limits::kRemedy);
      continue;
    }
    if (words.empty()) continue;
    if (rows == matrix.devices.size() || words.front().starts_with("Legend")) break;
    const auto device = std::ranges::find(matrix.devices, words.front(), &Device::name);
    if (device == matrix.devices.end()) {
      if (words.size() > 1 && cell_of(words[1]))
        return import_error(request_, line,
                            "the row of '" + shown(words.front()) +
                                "' has no column in the header: was a line or a column cut out?");
      continue;
    }
    const auto row = static_cast<std::size_t>(device - matrix.devices.begin());
    FORESHARD_TRY(read_row(matrix, row, words, line));
    last = line;
    ++rows;
  }
  if (matrix.devices.empty())
    return import_error(request_, 1, "no header line that begins with GPU0");
  FORESHARD_TRY(complete(matrix, last));
  FORESHARD_TRY(fault_in(matrix));
  return matrix;
}

/// Fills the missing rows of NICs from the other devices' rows; only cells between two such NICs
/// stay unknown.
Status MatrixReader::complete(Matrix& matrix, std::int64_t last_line) const {
  for (std::size_t i = 0; i < matrix.devices.size(); ++i) {
    const auto& device = matrix.devices[i];
    for (std::size_t j = 0; j < i; ++j)
      if (matrix.devices[j].name == device.name)
        return import_error(request_, last_line, shown(device.name) + " is there twice");
    if (matrix.lines[i] > 0) continue;
    if (device.gpu)
      return import_error(request_, last_line,
                          "the table ends without the row of " + shown(device.name) +
                              ", which its header names: was its end cut off?");
    matrix.missing.push_back(shown(device.name));
  }
  for (std::size_t i = 0; i < matrix.devices.size(); ++i) {
    if (matrix.lines[i] > 0) continue;
    for (std::size_t j = 0; j < matrix.devices.size(); ++j)
      matrix.cells[i].push_back(i == j                ? Cell{PcieDistance::kSelf, 0}
                                : matrix.lines[j] > 0 ? matrix.cells[j][i]
                                                      : Cell{PcieDistance::kHidden, 0});
  }
  return {};
}

Status MatrixReader::read_row(Matrix& matrix, std::size_t row,
                              const std::vector<std::string_view>& words, std::int64_t line) const {
  const std::size_t columns = matrix.devices.size();
  Device& device = matrix.devices[row];
  if (matrix.lines[row] > 0)
    return import_error(request_, line,
                        "the row of " + shown(device.name) + " is there twice, first in line " +
                            std::to_string(matrix.lines[row]));
  std::vector<Cell> cells;
  for (std::size_t i = 1; i < words.size() && cells.size() < columns; ++i) {
    const auto cell = cell_of(words[i]);
    if (!cell)
      return import_error(request_, line,
                          shown(device.name) + ": '" + shown(words[i]) + "' under " +
                              shown(matrix.devices[cells.size()].name) +
                              " is none of X, NV#, PIX, PXB, PHB, NODE, SYS");
    cells.push_back(*cell);
  }
  if (cells.size() < columns)
    return import_error(request_, line,
                        shown(device.name) + " has " + std::to_string(cells.size()) + " of " +
                            std::to_string(columns) + " cells: is the line cut off?");
  // CPU affinity, then NUMA affinity.
  if (words.size() > columns + 1) device.numa = words[columns + 1];
  if (words.size() > columns + 2 && words[columns + 2] != "N/A") device.numa = words[columns + 2];
  matrix.cells[row] = std::move(cells);
  matrix.lines[row] = line;
  return {};
}

Status MatrixReader::fault_in(const Matrix& matrix) const {
  const auto name = [&](std::size_t i) { return shown(matrix.devices[i].name); };
  for (std::size_t i = 0; i < matrix.devices.size(); ++i) {
    if (matrix.devices[i].gpu && i > 0 && !matrix.devices[i - 1].gpu)
      return import_error(request_, matrix.lines[i], name(i) + " stands behind a NIC");
  }
  for (std::size_t i = 0; i < matrix.cells.size(); ++i)
    for (std::size_t j = 0; j < matrix.cells.size(); ++j) {
      const Cell& there = matrix.cells[i][j];
      const Cell& back = matrix.cells[j][i];
      if ((there.near == PcieDistance::kSelf) != (i == j))
        return import_error(request_, matrix.lines[i],
                            "X is not where row and column are the same, but under " + name(j));
      if (there.near != back.near || there.nvlinks != back.nvlinks)
        return import_error(request_, matrix.lines[i],
                            name(i) + " and " + name(j) + " differ in the two directions");
      if (there.nvlinks > 0 && !(matrix.devices[i].gpu && matrix.devices[j].gpu))
        return import_error(
            request_, matrix.lines[i],
            "NVLinks between " + name(i) + " and " + name(j) + ", which are not both GPUs");
    }
  return {};
}

/// Sets of devices that are joined by distances of at most `farthest`.
class Groups {
 public:
  Groups(const Matrix& matrix, PcieDistance farthest) : group_(matrix.devices.size()) {
    std::iota(group_.begin(), group_.end(), std::size_t{0});
    for (std::size_t i = 0; i < group_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (matrix.cells[i][j].near <= farthest) join(i, j);
  }
  void join(std::size_t i, std::size_t j) {
    const std::size_t from = group_[i];
    const std::size_t to = group_[j];
    for (auto& group : group_)
      if (group == from) group = to;
  }
  std::size_t of(std::size_t i) const { return group_[i]; }
  std::size_t size(std::size_t i) const {
    return static_cast<std::size_t>(std::ranges::count(group_, group_[i]));
  }

 private:
  std::vector<std::size_t> group_;
};

/// In a tree, all devices of one group are within `farthest` of each other: checks this for each
/// cell.
Status fault_in_groups(const ImportRequest& request, const Matrix& matrix, const Groups& groups,
                       PcieDistance farthest, const char* word) {
  for (std::size_t i = 0; i < matrix.cells.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const PcieDistance near = matrix.cells[i][j].near;
      if (groups.of(i) != groups.of(j) || near <= farthest || near == PcieDistance::kHidden)
        continue;
      return import_error(request, matrix.lines[i],
                          shown(matrix.devices[i].name) + " and " + shown(matrix.devices[j].name) +
                              " are farther from each other than " + word + ", though both are " +
                              word + " or nearer to the same others, which no PCIe tree allows");
    }
  return {};
}

struct PathRates {
  BytesPerSecond pcie;
  BytesPerSecond port;
  BytesPerSecond bridge;
};

/// One socket per NUMA node, one switch per group that PXB or PIX joins, and below that switch one
/// for each smaller group of several devices that PIX joins.
Result<HostTree> tree_of(const ImportRequest& request, const Matrix& matrix,
                         const PathRates& lane) {
  const Groups pix(matrix, PcieDistance::kPix);
  const Groups pxb(matrix, PcieDistance::kPxb);
  Groups numa(matrix, PcieDistance::kNode);
  for (const auto& [groups, farthest, word] : {std::tuple(&pix, PcieDistance::kPix, "PIX"),
                                               {&pxb, PcieDistance::kPxb, "PXB"},
                                               {&numa, PcieDistance::kNode, "NODE"}})
    FORESHARD_TRY(fault_in_groups(request, matrix, *groups, farthest, word));
  for (std::size_t i = 0; i < matrix.devices.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (matrix.devices[i].gpu && matrix.devices[j].gpu && !matrix.devices[i].numa.empty() &&
          matrix.devices[i].numa == matrix.devices[j].numa &&
          matrix.cells[i][j].near == PcieDistance::kHidden)
        numa.join(i, j);

  HostTree tree;
  std::map<std::size_t, std::size_t> sockets;
  std::map<std::size_t, std::size_t> switches;
  std::map<std::size_t, std::size_t> leaves;
  std::int64_t gpus = 0;
  std::int64_t nics = 0;
  for (std::size_t i = 0; i < matrix.devices.size(); ++i) {
    const auto [socket, new_socket] = sockets.try_emplace(numa.of(i), tree.parts.size());
    if (new_socket) tree.add({.kind = Kind::kSocket});
    const auto [root, new_root] = switches.try_emplace(pxb.of(i), tree.parts.size());
    if (new_root) tree.add({.kind = Kind::kSwitch, .parent = socket->second, .up = lane.pcie});
    std::size_t parent = root->second;
    if (pix.size(i) > 1 && pix.size(i) < pxb.size(i)) {
      const auto [leaf, new_leaf] = leaves.try_emplace(pix.of(i), tree.parts.size());
      if (new_leaf) tree.add({.kind = Kind::kSwitch, .parent = parent, .up = lane.pcie});
      parent = leaf->second;
    }
    if (matrix.devices[i].gpu) {
      tree.add({.kind = Kind::kGpu, .index = gpus++, .parent = parent, .up = lane.pcie});
    } else {
      tree.add({.kind = Kind::kNic,
                .index = nics++,
                .parent = parent,
                .up = lane.pcie,
                .port = lane.port});
    }
  }
  for (auto i = sockets.begin(); i != sockets.end(); ++i)
    for (auto j = sockets.begin(); j != i; ++j)
      tree.links.push_back({j->second, i->second, WiringLinkKind::kSocket, lane.bridge});
  return tree;
}

/// GPUs share an NVSwitch if their NVLinks to others add up to more than they have.
Status add_nvlinks(const ImportRequest& request, const Matrix& matrix, const Defaults& defaults,
                   HostTree& tree) {
  std::vector<std::size_t> parts;  // GPU -> part
  for (std::size_t i = 0; i < tree.parts.size(); ++i)
    if (tree.parts[i].kind == Kind::kGpu) parts.push_back(i);
  const auto links = [&](std::size_t i, std::size_t j) { return matrix.cells[i][j].nvlinks; };
  const std::int64_t most = defaults.hardware.nvlinks;
  std::vector<bool> switched(parts.size(), false);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::int64_t sum = 0;
    std::int64_t largest = 0;
    for (std::size_t j = 0; j < parts.size(); ++j) {
      sum += links(i, j);
      largest = std::max(largest, links(i, j));
    }
    if (sum > 0 && !defaults.hardware.nvlink)
      return import_error(request, matrix.lines[i],
                          shown(matrix.devices[i].name) + " has NVLinks, but " +
                              defaults.device.name +
                              " has none in configs/hardware/gpus.yaml: is --device right?");
    if (largest > most)
      return import_error(request, matrix.lines[i],
                          shown(matrix.devices[i].name) + " has " + std::to_string(largest) +
                              " NVLinks to one other, but " + defaults.device.name + " has " +
                              std::to_string(most) + " in all: is --device right?");
    switched[i] = sum > most;
  }
  std::vector<bool> done(parts.size(), false);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      if (links(i, j) > 0 && !switched[i] && !switched[j])
        tree.links.push_back({parts[j], parts[i], WiringLinkKind::kNvLink,
                              static_cast<double>(links(i, j)) * *defaults.hardware.nvlink});
    if (!switched[i] || done[i]) continue;
    const std::size_t hub = tree.add({.kind = Kind::kNvSwitch});
    const auto own = *std::ranges::max_element(matrix.cells[i], {},
                                               [](const Cell& cell) { return cell.nvlinks; });
    for (std::size_t j = i; j < parts.size(); ++j) {
      if (j != i && links(i, j) == 0) continue;
      if (!switched[j] || done[j] || (j != i && links(i, j) != own.nvlinks))
        return import_error(request, matrix.lines[j],
                            shown(matrix.devices[i].name) + " and " +
                                shown(matrix.devices[j].name) +
                                ": their NVLinks are neither those of one switch nor of a mesh");
      done[j] = true;
      tree.links.push_back({parts[j], hub, WiringLinkKind::kNvLink,
                            static_cast<double>(own.nvlinks) * *defaults.hardware.nvlink});
    }
  }
  return {};
}

}  // namespace

bool looks_like_nvidia_smi(std::string_view text) {
  const std::string start = plain(text.substr(0, std::size_t{64} * 1024));
  for (std::size_t begin = 0; begin < start.size();) {
    const std::size_t end = std::min(start.find('\n', begin), start.size());
    if (!header_of(words_of(std::string_view(start).substr(begin, end - begin))).empty())
      return true;
    begin = end + 1;
  }
  return false;
}

Result<Imported> read_nvidia_smi(const ImportRequest& request, yaml::Loader& loader) {
  const auto matrix = MatrixReader(request).read();
  if (!matrix) return matrix.error();
  if (request.device.empty())
    return Error{
        Error::Code::kInvalidInput,
        request.name +
            ": the table does not name the GPUs: give --device, for example --device H100-SXM"};
  FORESHARD_ASSIGN(const auto hardware, read_hardware(loader));
  std::vector<std::string> remarks;
  const auto defaults = defaults_of(request.device, hardware, loader, remarks);
  if (!defaults) return defaults.error();

  PathRates lane{.pcie = pcie_bandwidth(pcie_generation(defaults->machine)),
                 .port = request.link_rate.value_or(BytesPerSecond()),
                 .bridge = *defaults->machine.pcie.socket_bandwidth};
  if (!matrix->missing.empty())
    remarks.push_back("the rows of " + matrix->missing.front() +
                      (matrix->missing.size() == 1 ? "" : " to " + matrix->missing.back()) +
                      " are missing: how near NICs are to GPUs stands in the rows of the GPUs, how "
                      "near they are to each other is not known");
  remarks.push_back("the table gives no rates: PCIe is taken as generation " +
                    std::to_string(pcie_generation(defaults->machine)) +
                    " x16 and the rate between sockets from the same machine");
  const bool has_nics =
      std::ranges::any_of(matrix->devices, [](const Device& d) { return !d.gpu; });
  if (has_nics && !request.link_rate) {
    if (!defaults->machine.nics)
      return Error{
          Error::Code::kInvalidInput,
          request.name + ": the table gives no rate of its NICs, and " + request.device +
              " has no usual machine: give --link-rate, for example --link-rate 400Gbit/s"};
    lane.port = *defaults->machine.nics->bandwidth;
    remarks.push_back(
        "NICs are taken with the rate of the same machine's; all of them are kept, "
        "also those that may serve storage only");
  }
  FORESHARD_ASSIGN(HostTree host, tree_of(request, *matrix, lane));
  host.bridges_from = defaults->usual();
  host.ports_from = request.link_rate ? kLinkRate : defaults->usual();
  FORESHARD_TRY(add_nvlinks(request, *matrix, *defaults, host));

  add_doubts(host, *defaults, hardware.limits, remarks);
  NodeConfig node = node_of(host, *defaults, request.name + " (nvidia-smi topo -m)");
  node.summary = "Imported from " + request.name + " (nvidia-smi topo -m).";
  return Imported{std::move(node), "nvidia-smi", request.name, std::move(remarks)};
}

}  // namespace foreshard::internal
