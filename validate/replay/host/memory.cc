#include "validate/replay/host/memory.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <tuple>
#include <unistd.h>

#include "base/check.h"
#include "base/quantity.h"

namespace foreshard::replay::host {
namespace {

std::optional<double> number_in(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

// A number in a file of named numbers: "MemAvailable:   123 kB" in /proc/meminfo, "inactive_file
// 123" in memory.stat.
std::optional<double> entry_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  double value = 0;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    if (words >> word >> value && (word == name || word == name + ":")) return value;
  }
  return std::nullopt;
}

void lower(double& least, std::optional<double> other) {
  if (other) least = std::min(least, std::max(0.0, *other));
}

// Bytes that the control group in `folder` leaves; nothing without a limit.
std::optional<double> left_in(const std::string& folder, const char* limit, const char* usage,
                              const char* cache) {
  const auto most = number_in(folder + "/" + limit);  // "max" is no number
  const auto used = number_in(folder + "/" + usage);
  if (!most || !used) return std::nullopt;
  return *most - *used + entry_in(folder + "/memory.stat", cache).value_or(0);
}

// The least that is left in the control groups of this process, from its own up to the root, and
// `least`.
double left_in_groups(double least) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && controllers.find("memory") == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string path = line.substr(second + 1);;) {
      while (!path.empty() && path.back() == '/') path.pop_back();
      lower(least, v2 ? left_in(root + path, "memory.max", "memory.current", "inactive_file")
                      : left_in(root + path, "memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file"));
      if (path.empty()) break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return least;
}

}  // namespace

Bytes available_memory() {
  constexpr double kUnknown = 1e15;  // KiB
  return Bytes::from_base(
      left_in_groups(entry_in("/proc/meminfo", "MemAvailable").value_or(kUnknown) * 1024));
}

Bytes address_space_left() {
  double least = 1e18;
  rlimit limit{};
  const auto pages = number_in("/proc/self/statm");
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && pages)
    lower(least, static_cast<double>(limit.rlim_cur) -
                     *pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
  return Bytes::from_base(least);
}

std::optional<Bytes> cache_share() {
  const std::string root = "/sys/devices/system/cpu/cpu0/cache/";
  std::optional<Bytes> share;
  for (int index = 0;; ++index) {
    const std::string folder = root + "index" + std::to_string(index) + "/";
    std::ifstream size_file(folder + "size");
    double kib = 0;
    char unit = 'K';
    if (!(size_file >> kib >> unit)) break;
    if (unit == 'M') kib *= 1024;
    // "ff,ffffffff": one bit for each core that shares it.
    std::ifstream map_file(folder + "shared_cpu_map");
    std::string map;
    map_file >> map;
    int cores = 0;
    for (const char c : map)
      if (std::isxdigit(static_cast<unsigned char>(c)) != 0)
        cores +=
            __builtin_popcount(static_cast<unsigned>(std::stoi(std::string(1, c), nullptr, 16)));
    share = kib * 1_KiB / std::max(1, cores);
  }
  return share;
}

Result<Pages> Pages::reserve(std::size_t bytes) {
  Pages pages;
  if (bytes == 0) return pages;
  constexpr std::size_t kLarge = std::size_t{2} << 20;
  bytes = (bytes + kLarge - 1) / kLarge * kLarge;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return Error{Error::Code::kInfeasible,
                 "the system refuses " + std::to_string(bytes) + " bytes: " + std::strerror(errno)};
  madvise(data, bytes, MADV_HUGEPAGE);
  pages.data_ = static_cast<std::byte*>(data);
  pages.size_ = bytes;
  return pages;
}

Pages::~Pages() {
  if (data_ != nullptr) munmap(data_, size_);
}
Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Result<Region> Region::make(std::size_t bytes, Content content) {
  FORESHARD_ASSIGN(auto pages, Pages::reserve(bytes));
  Region region;
  region.pages_ = std::move(pages);
  const auto all = region.pages_.bytes();
  if (content == Content::kZero) {
    if (!all.empty()) std::memset(all.data(), 0, all.size());
    return region;
  }
  // Each word is a bf16 with a magnitude of 0.25 to 0.5, twice; as fp32 the lower half is the rest
  // of the fraction. As fp16 it is 1.5 to 2, as fp8 two ordinary numbers or NaN (which E4M3 has
  // only at 0x7f and 0xff).
  std::uint32_t state = 0x9e3779b9U;
  for (std::size_t at = 0; at < all.size(); at += sizeof(std::uint32_t)) {
    state = state * 1664525U + 1013904223U;
    const std::uint32_t half = 0x3e80U | ((state >> 24) & 0x7fU) | (((state >> 23) & 1U) << 15);
    const std::uint32_t both = (half << 16) | half;
    std::memcpy(all.data() + at, &both, sizeof both);
  }
  return region;
}

std::span<std::byte> Region::take(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const std::size_t rounded = (bytes + kLine - 1) / kLine * kLine;
  FORESHARD_CHECK(bytes <= size());
  if (next_ + bytes > size()) next_ = 0;
  const auto piece = pages_.bytes().subspan(next_, bytes);
  next_ = std::min(next_ + rounded, size());
  return piece;
}

std::size_t Heap::allocate(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  live_ += size;
  peak_ = std::max(peak_, live_);
  if (size == 0) return extent_;
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    if (gap->second < size) continue;
    const std::size_t offset = gap->first;
    const std::size_t rest = gap->second - size;
    gaps_.erase(gap);
    if (rest > 0) gaps_.emplace(offset + size, rest);
    return offset;
  }
  // No gap is large enough: a gap at the end grows, or the block is appended.
  std::size_t offset = extent_;
  if (!gaps_.empty()) {
    const auto last = std::prev(gaps_.end());
    if (last->first + last->second == extent_) {
      offset = last->first;
      gaps_.erase(last);
    }
  }
  extent_ = offset + size;
  return offset;
}

void Heap::free(std::size_t offset, std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  FORESHARD_CHECK(size <= live_);
  live_ -= size;
  if (size == 0) return;
  auto [gap, added] = gaps_.emplace(offset, size);
  FORESHARD_CHECK(added);
  const auto next = std::next(gap);
  if (next != gaps_.end()) {
    FORESHARD_CHECK(offset + size <= next->first);
    if (offset + size == next->first) {
      gap->second += next->second;
      gaps_.erase(next);
    }
  }
  if (gap == gaps_.begin()) return;
  const auto before = std::prev(gap);
  FORESHARD_CHECK(before->first + before->second <= offset);
  if (before->first + before->second == offset) {
    before->second += gap->second;
    gaps_.erase(gap);
  }
}

namespace {

std::size_t whole(Bytes bytes) {
  return static_cast<std::size_t>(std::ceil(bytes.in_base()));
}

Bytes quantity(std::size_t bytes) {
  return static_cast<double>(bytes) * 1_B;
}

}  // namespace

ProgramMemory::ProgramMemory(const RankPlan& plan)
    : plan_(plan),
      allocated_by_(plan.expansion.instances.size()),
      freed_by_(plan.expansion.instances.size()) {
  const program::Role& role = plan.program->roles[plan.role];
  for (const program::StaticMemory& memory : role.memory) static_bytes_ += whole(memory.bytes);

  // A buffer is identified by name, chunk, micro-batch and model layer (program.h).
  using Key = std::tuple<std::string_view, std::int32_t, std::int32_t, std::int32_t>;
  std::map<Key, std::uint32_t> live;
  Heap heap;
  const auto& events = plan.memory.events;
  for (std::size_t e = 0; e < events.size(); ++e) {
    const program::MemoryEvent& event = events[e];
    const program::Call& call = role.calls[static_cast<std::size_t>(event.call)];
    const program::Task& task =
        plan.program->blocks[call.block.index()].tasks[static_cast<std::size_t>(event.task)];
    const std::string_view name = event.allocate ? std::get<program::Allocate>(task.body).buffer
                                                 : std::get<program::Free>(task.body).buffer;
    const Key key{name, call.chunk, call.micro_batch, call.layer(event.iteration)};
    const auto anchors = plan.memory.anchors_of(event);
    if (event.allocate) {
      const auto index = static_cast<std::uint32_t>(buffers_.size());
      live[key] = index;
      buffers_.push_back({.bytes = whole(event.bytes), .allocate = e});
      buffers_.back().offset = heap.allocate(buffers_.back().bytes);
      allocated_by_[static_cast<std::size_t>(anchors.front())].push_back(index);
      continue;
    }
    const auto found = live.find(key);
    FORESHARD_CHECK(found != live.end());  // Invariant 15 of verify.h.
    Buffer& buffer = buffers_[found->second];
    buffer.anchors = anchors.size();
    for (const std::int32_t anchor : anchors)
      freed_by_[static_cast<std::size_t>(anchor)].push_back(found->second);
    heap.free(buffer.offset, buffer.bytes);
    live.erase(found);
  }
  peak_ = heap.peak();
  extent_ = heap.extent() + heap.extent() / 8;
}

Bytes ProgramMemory::need() const {
  return quantity(static_bytes_ + extent_);
}

std::string ProgramMemory::name_of(std::size_t event) const {
  const program::MemoryEvent& of = plan_.memory.events[event];
  const program::Call& call =
      plan_.program->roles[plan_.role].calls[static_cast<std::size_t>(of.call)];
  const auto& task =
      plan_.program->blocks[call.block.index()].tasks[static_cast<std::size_t>(of.task)];
  return "buffer " + std::get<program::Allocate>(task.body).buffer + " of " +
         describe(plan_, static_cast<std::size_t>(plan_.memory.anchors_of(of).front()));
}

std::optional<std::string> ProgramMemory::shortage(Bytes available) const {
  if (!(need() > available)) return std::nullopt;
  const auto room = available.in_base();
  auto live = static_cast<double>(static_bytes_);
  if (live > room)
    return "its static memory (parameters, optimizer state) asks for " +
           format(quantity(static_bytes_));
  const auto& events = plan_.memory.events;
  std::size_t largest = 0;
  for (std::size_t e = 0; e < events.size(); ++e) {
    const double bytes = events[e].bytes.in_base();
    if (!events[e].allocate) {
      live -= bytes;
      continue;
    }
    if (live + bytes > room)
      return name_of(e) + " asks for " + format(events[e].bytes) + " when " +
             format(Bytes::from_base(room - live)) + " are left";
    live += bytes;
    if (events[e].bytes > events[largest].bytes || !events[largest].allocate) largest = e;
  }
  // All buffers would fit without the gaps between them.
  return name_of(largest) + " and the others ask for " + format(need());
}

Status ProgramMemory::reserve() {
  FORESHARD_ASSIGN(pages_, Pages::reserve(static_bytes_ + extent_));
  if (!pages_.bytes().empty()) std::memset(pages_.bytes().data(), 0, pages_.bytes().size());
  return {};
}

void ProgramMemory::begin_step() {
  heap_ = {};
  for (Buffer& buffer : buffers_) {
    buffer.waiting = buffer.anchors;
    buffer.live = false;
  }
}

Status ProgramMemory::starts(std::size_t instance) {
  for (const std::uint32_t index : allocated_by_[instance]) {
    Buffer& buffer = buffers_[index];
    buffer.offset = heap_.allocate(buffer.bytes);
    buffer.live = true;
    peak_ = std::max(peak_, heap_.peak());
    if (heap_.extent() > pages_.bytes().size() - static_bytes_)
      return Error{Error::Code::kInfeasible,
                   name_of(buffer.allocate) + " asks for " + format(quantity(buffer.bytes)) +
                       ", but buffers that came and went left no gap of this size in " +
                       format(quantity(pages_.bytes().size() - static_bytes_))};
    // All instances for which its Free waits have already finished.
    if (buffer.anchors > 0 && buffer.waiting == 0) {
      heap_.free(buffer.offset, buffer.bytes);
      buffer.live = false;
    }
  }
  return {};
}

void ProgramMemory::finished(std::size_t instance) {
  for (const std::uint32_t index : freed_by_[instance]) {
    Buffer& buffer = buffers_[index];
    if (--buffer.waiting > 0 || !buffer.live) continue;
    heap_.free(buffer.offset, buffer.bytes);
    buffer.live = false;
  }
}

Bytes ProgramMemory::peak() const {
  return quantity(static_bytes_ + peak_);
}

Bytes ProgramMemory::gaps() const {
  return quantity(pages_.bytes().size()) - peak();
}

}  // namespace foreshard::replay::host
