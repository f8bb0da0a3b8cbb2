/// \file
/// A queue of items (small dense numbers) by due time, each at most once. Items due at the same
/// instant share one node of a 4-ary heap, so that the steps of synchronous collectives, where
/// thousands of flows end together, cost O(1) per flow instead of O(log n).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace foreshard::engine::internal {

class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  /// \pre !empty()
  double next_time() const { return heap_.front().time; }

  /// \pre `item` is not queued.
  void push(std::int32_t item, double time) {
    if (at(item) >= items_.size()) items_.resize(at(item) + 1);
    append(item, group_of(time));
  }
  bool contains(std::int32_t item) const {
    return at(item) < items_.size() && items_[at(item)].group != kNone;
  }
  /// \pre `item` is queued.
  void move(std::int32_t item, double time) {
    const std::int32_t group = items_[at(item)].group;
    if (groups_[at(group)].time == time) return;
    if (groups_[at(group)].first != groups_[at(group)].last) {
      unlink(item);
      append(item, group_of(time));
    } else if (const std::int32_t other = known_group(time); other != kNone) {
      unlink(item);
      append(item, other);
    } else {
      rekey(group, time);
    }
  }
  /// \pre `item` is queued.
  void remove(std::int32_t item) { unlink(item); }

  /// Removes all items that are due by `time` and appends them to `due`.
  void pop_until(double time, std::vector<std::int32_t>& due) {
    while (!heap_.empty() && heap_.front().time <= time) {
      const std::int32_t group = heap_.front().group;
      for (std::int32_t i = groups_[at(group)].first; i != kNone;) {
        due.push_back(i);
        Item& item = items_[at(i)];
        i = item.next;
        item = {};
      }
      drop(group);
    }
  }

 private:
  static constexpr std::int32_t kNone = -1;
  static constexpr std::size_t kArity = 4;
  static constexpr std::size_t kCacheBits = 8;

  struct Item {
    std::int32_t group = kNone;
    std::int32_t previous = kNone;
    std::int32_t next = kNone;
  };
  // The time of a free group equals no other time (NaN).
  struct Group {
    double time = std::numeric_limits<double>::quiet_NaN();
    std::int32_t first = kNone;
    std::int32_t last = kNone;
    std::int32_t position = kNone;
  };
  struct Node {
    double time;
    std::int32_t group;
  };

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  std::int32_t& cached(double time) {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // Fibonacci hashing: 2^64 / phi
    return cache_[(std::bit_cast<std::uint64_t>(time) * kGolden) >> (64 - kCacheBits)];
  }
  // The group with exactly this time, if it is among those used recently.
  std::int32_t known_group(double time) {
    const std::int32_t group = cached(time);
    return group != kNone && groups_[at(group)].time == time ? group : kNone;
  }
  std::int32_t group_of(double time) {
    std::int32_t group = known_group(time);
    if (group != kNone) return group;
    if (free_.empty()) {
      group = static_cast<std::int32_t>(groups_.size());
      groups_.emplace_back();
    } else {
      group = free_.back();
      free_.pop_back();
    }
    cached(time) = group;
    groups_[at(group)].time = time;
    heap_.push_back({time, group});
    sift_up(heap_.size() - 1);
    return group;
  }
  void append(std::int32_t i, std::int32_t group) {
    Group& g = groups_[at(group)];
    items_[at(i)] = {group, g.last, kNone};
    (g.last == kNone ? g.first : items_[at(g.last)].next) = i;
    g.last = i;
  }
  void unlink(std::int32_t i) {
    const Item item = items_[at(i)];
    Group& g = groups_[at(item.group)];
    (item.previous == kNone ? g.first : items_[at(item.previous)].next) = item.next;
    (item.next == kNone ? g.last : items_[at(item.next)].previous) = item.previous;
    items_[at(i)] = {};
    if (g.first == kNone) drop(item.group);
  }
  void rekey(std::int32_t group, double time) {
    Group& g = groups_[at(group)];
    const std::size_t position = at(g.position);
    const bool earlier = time < g.time;
    g.time = time;
    heap_[position].time = time;
    cached(time) = group;
    if (earlier)
      sift_up(position);
    else
      sift_down(position);
  }
  // Takes a group out of the heap and frees it.
  void drop(std::int32_t group) {
    const std::size_t position = at(groups_[at(group)].position);
    groups_[at(group)] = {};
    free_.push_back(group);
    const Node last = heap_.back();
    heap_.pop_back();
    if (position == heap_.size()) return;
    const bool earlier = last.time < heap_[position].time;
    put(position, last);
    if (earlier)
      sift_up(position);
    else
      sift_down(position);
  }

  void put(std::size_t position, Node node) {
    heap_[position] = node;
    groups_[at(node.group)].position = static_cast<std::int32_t>(position);
  }
  void sift_up(std::size_t position) {
    const Node node = heap_[position];
    while (position > 0) {
      const std::size_t parent = (position - 1) / kArity;
      if (heap_[parent].time <= node.time) break;
      put(position, heap_[parent]);
      position = parent;
    }
    put(position, node);
  }
  void sift_down(std::size_t position) {
    const Node node = heap_[position];
    const std::size_t size = heap_.size();
    for (;;) {
      const std::size_t first = position * kArity + 1;
      if (first >= size) break;
      const std::size_t end = first + kArity < size ? first + kArity : size;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child)
        if (heap_[child].time < heap_[least].time) least = child;
      if (node.time <= heap_[least].time) break;
      put(position, heap_[least]);
      position = least;
    }
    put(position, node);
  }

  std::vector<Node> heap_;
  std::vector<Group> groups_;
  std::vector<std::int32_t> free_;
  std::vector<Item> items_;
  std::array<std::int32_t, std::size_t{1} << kCacheBits> cache_ = [] {
    std::array<std::int32_t, std::size_t{1} << kCacheBits> none;
    none.fill(kNone);
    return none;
  }();
};

}  // namespace foreshard::engine::internal
