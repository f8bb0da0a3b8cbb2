/// \file
/// A queue of items by due time, each queued at most once. The engine (fluid.cc) keeps in it when
/// its running activities end; an item is an activity's slot, a small dense number, and times are
/// simulated seconds. Items due at the same instant share one node of a 4-ary heap, so that the
/// steps of synchronous collectives, where thousands of flows end together, cost O(1) per flow
/// instead of O(log n).
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
    if (index(item) >= items_.size()) items_.resize(index(item) + 1);
    append(item, group_of(time));
  }
  bool contains(std::int32_t item) const {
    return index(item) < items_.size() && items_[index(item)].group != kNone;
  }
  /// \pre `item` is queued.
  void move(std::int32_t item, double time) {
    const std::int32_t group = items_[index(item)].group;
    if (groups_[index(group)].time == time) return;
    if (groups_[index(group)].first != groups_[index(group)].last) {
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

  /// Removes all items that are due by `time` (at it or earlier) and appends them to `due`; without
  /// such items nothing is appended.
  void pop_until(double time, std::vector<std::int32_t>& due) {
    while (!heap_.empty() && heap_.front().time <= time) {
      const std::int32_t group = heap_.front().group;
      for (std::int32_t i = groups_[index(group)].first; i != kNone;) {
        due.push_back(i);
        Item& item = items_[index(i)];
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
    std::int32_t group = kNone;     // index in groups_; kNone if the item is not queued
    std::int32_t previous = kNone;  // neighbours in the group: items
    std::int32_t next = kNone;
  };
  // Items with one due time: a doubly linked list, and one node of the heap. A free group has the
  // time NaN, which equals no other, so that a stale entry of the cache finds nothing.
  struct Group {
    double time = std::numeric_limits<double>::quiet_NaN();
    std::int32_t first = kNone;     // item
    std::int32_t last = kNone;      // item
    std::int32_t position = kNone;  // index in heap_
  };
  struct Node {
    double time;
    std::int32_t group;
  };

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

  // The entry of the cache for this time: a group that had a time with this hash lately, or kNone.
  std::int32_t& cached(double time) {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // Fibonacci hashing: 2^64 / phi
    return cache_[(std::bit_cast<std::uint64_t>(time) * kGolden) >> (64 - kCacheBits)];
  }
  // The group with exactly this time if the cache still has it, else kNone. After a miss a second
  // group of the same time is made, which does no harm: pop_until() takes both.
  std::int32_t known_group(double time) {
    const std::int32_t group = cached(time);
    return group != kNone && groups_[index(group)].time == time ? group : kNone;
  }
  // The group with this time, newly made if it is not in the cache.
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
    groups_[index(group)].time = time;
    heap_.push_back({time, group});
    sift_up(heap_.size() - 1);
    return group;
  }
  // Appends item i to the group's list.
  void append(std::int32_t i, std::int32_t group) {
    Group& g = groups_[index(group)];
    items_[index(i)] = {group, g.last, kNone};
    if (g.last == kNone)
      g.first = i;
    else
      items_[index(g.last)].next = i;
    g.last = i;
  }
  // Takes item i out of its group's list; frees a group that is empty then.
  void unlink(std::int32_t i) {
    const Item item = items_[index(i)];
    Group& g = groups_[index(item.group)];
    if (item.previous == kNone)
      g.first = item.next;
    else
      items_[index(item.previous)].next = item.next;
    if (item.next == kNone)
      g.last = item.previous;
    else
      items_[index(item.next)].previous = item.previous;
    items_[index(i)] = {};
    if (g.first == kNone) drop(item.group);
  }
  // Gives the whole group another time.
  void rekey(std::int32_t group, double time) {
    Group& g = groups_[index(group)];
    const std::size_t position = index(g.position);
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
    const std::size_t position = index(groups_[index(group)].position);
    groups_[index(group)] = {};
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
    groups_[index(node.group)].position = static_cast<std::int32_t>(position);
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

  std::vector<Node> heap_;          // 4-ary: the children of i are 4 i + 1 to 4 i + 4
  std::vector<Group> groups_;       // free ones included
  std::vector<std::int32_t> free_;  // free groups
  std::vector<Item> items_;         // item -> its place
  // hash of a time -> group
  std::array<std::int32_t, std::size_t{1} << kCacheBits> cache_ = [] {
    std::array<std::int32_t, std::size_t{1} << kCacheBits> none;
    none.fill(kNone);
    return none;
  }();
};

}  // namespace foreshard::engine::internal
