#include "sim/simulate/chains.h"

#include <algorithm>

namespace foreshard::sim {
namespace {

// Number of instances that wait for each instance; 2 means more than one.
std::vector<std::uint8_t> count_dependents(const program::Expansion& expansion) {
  std::vector<std::uint8_t> count(expansion.instances.size(), 0);
  for (const std::int32_t before : expansion.flat) {
    auto& of = count[static_cast<std::size_t>(before)];
    of = static_cast<std::uint8_t>(std::min(of + 1, 2));
  }
  return count;
}

class ChainFinder {
 public:
  ChainFinder(const program::Expansion& expansion, std::span<const ChainItem> items)
      : expansion_(expansion),
        items_(items),
        dependents_(count_dependents(expansion)),
        chains_(no_chains(items)) {}

  Chains run() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (is_end_of_another(i)) {
        chains_.head[i] = chains_.head[static_cast<std::size_t>(expansion_.predecessors(i)[0])];
        chains_.part[i].begin = 1;
      }
      if (!items_[i].is_kernel) continue;
      if (continues(i)) {
        chains_.head[i] = static_cast<std::int32_t>(members_.front());
        chains_.part[i].begin = work_;  // a time, until the chain is closed
      } else {
        close();
      }
      members_.push_back(i);
      work_ += items_[i].work;
    }
    close();
    return std::move(chains_);
  }

 private:
  bool is_end_of_another(std::size_t i) const {
    const program::Instance& sync = expansion_.instances[i];
    const auto before = expansion_.predecessors(i);
    if (sync.stream >= 0 || before.size() != 1) return false;
    const program::Instance& task = expansion_.instances[static_cast<std::size_t>(before[0])];
    return task.host_sync == sync.host_sync && task.host_offset >= sync.host_offset;
  }

  bool continues(std::size_t i) const {
    if (members_.empty()) return false;
    const auto before = expansion_.predecessors(i);
    const std::size_t previous = members_.back();
    if (before.size() != 1 || static_cast<std::size_t>(before[0]) != previous) return false;
    if (dependents_[previous] != 1) return false;
    const program::Instance& head = expansion_.instances[members_.front()];
    const program::Instance& instance = expansion_.instances[i];
    return items_[i].is_optimizer == items_[members_.front()].is_optimizer &&
           instance.stream == head.stream && instance.host_sync == head.host_sync &&
           (instance.host_offset - head.host_offset).in_base() <= work_;
  }

  void close() {
    if (members_.size() > 1 && work_ > 0) {
      chains_.work[members_.front()] = work_;
      for (std::size_t k = 1; k < members_.size(); ++k) {
        Part& part = chains_.part[members_[k]];
        part.begin /= work_;
        chains_.part[members_[k - 1]].end = part.begin;
      }
    }
    members_.clear();
    work_ = 0;
  }

  const program::Expansion& expansion_;
  std::span<const ChainItem> items_;
  std::vector<std::uint8_t> dependents_;
  Chains chains_;
  std::vector<std::size_t> members_;  // members of the chain that may continue
  double work_ = 0;
};

}  // namespace

Chains no_chains(std::span<const ChainItem> items) {
  Chains chains;
  chains.part.resize(items.size());
  chains.head.resize(items.size());
  chains.work.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    chains.head[i] = static_cast<std::int32_t>(i);
    chains.work[i] = items[i].work;
  }
  return chains;
}

Chains find_chains(const program::Expansion& expansion, std::span<const ChainItem> items) {
  return ChainFinder(expansion, items).run();
}

}  // namespace foreshard::sim
