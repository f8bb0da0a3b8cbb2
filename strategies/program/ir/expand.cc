#include "strategies/program/ir/expand.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/check.h"
#include "base/hash.h"
#include "base/index.h"

namespace foreshard::program {
namespace internal {

// A task that becomes an instance. `waits` are launches of the same iteration, at most one per
// stream, none on its own stream and none on the host.
struct Launch {
  std::int32_t task;
  std::int32_t stream;
  bool sync;
  bool waits_for_call;  // No `after` of its own.
  double launches;
  Seconds host_time;  // Time of a HostWork.
  std::vector<std::int32_t> waits;
};

struct MemoryTask {
  std::int32_t task;
  bool allocate;
  MemoryKind kind;
  Bytes bytes;
  std::int32_t buffer;
  std::vector<std::int32_t> anchors;  // Launches of the same iteration.
};

struct PreparedBlock {
  std::vector<Launch> launches;
  std::vector<MemoryTask> memory;
  std::vector<std::vector<std::int32_t>> anchors_of_task;  // Launches that finish a task.
  std::vector<std::int32_t> last_of_streams;               // The last launch on each stream.
};

}  // namespace internal

namespace {

using internal::Launch;
using internal::MemoryTask;
using internal::PreparedBlock;

constexpr std::int32_t kHost = -1;
constexpr std::int32_t kNone = -1;

std::int64_t launches_in(const Block& block) {
  return std::count_if(block.tasks.begin(), block.tasks.end(),
                       [](const Task& task) { return !is_memory(task); });
}

// The latest launch on each stream: streams run in order, so it stands for the earlier ones.
std::vector<std::int32_t> latest_per_stream(const std::vector<Launch>& launches,
                                            std::vector<std::int32_t> candidates) {
  std::sort(candidates.begin(), candidates.end(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(launches[at(a)].stream, b) < std::pair(launches[at(b)].stream, a);
  });
  const auto same_stream = [&](std::int32_t a, std::int32_t b) {
    return launches[at(a)].stream == launches[at(b)].stream;
  };
  candidates.erase(std::unique(candidates.begin(), candidates.end(), same_stream),
                   candidates.end());
  return candidates;
}

class BlockBuilder {
 public:
  explicit BlockBuilder(std::map<std::string_view, std::int32_t>& buffers) : buffers_(buffers) {}

  PreparedBlock build(const Block& block) {
    PreparedBlock out;
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const Task& task = block.tasks[t];
      const auto index = static_cast<std::int32_t>(t);
      if (is_memory(task)) {
        out.anchors_of_task.push_back(anchors_of_memory(task, out));
        out.memory.push_back(memory_task(task, index, out.anchors_of_task.back()));
      } else {
        out.anchors_of_task.push_back({static_cast<std::int32_t>(out.launches.size())});
        out.launches.push_back(launch(task, index, out));
      }
    }
    std::vector<std::int32_t> all(out.launches.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
    out.last_of_streams = latest_per_stream(out.launches, std::move(all));
    return out;
  }

 private:
  static std::vector<std::int32_t> finishing(const Task& task, const PreparedBlock& block) {
    std::vector<std::int32_t> anchors;
    for (const std::int32_t after : task.after) {
      const auto& of = block.anchors_of_task[at(after)];
      anchors.insert(anchors.end(), of.begin(), of.end());
    }
    return latest_per_stream(block.launches, std::move(anchors));
  }

  static std::vector<std::int32_t> anchors_of_memory(const Task& task, const PreparedBlock& block) {
    if (!task.after.empty()) return finishing(task, block);
    const auto issued = static_cast<std::int32_t>(block.launches.size());
    return {std::max(issued - 1, 0)};
  }

  MemoryTask memory_task(const Task& task, std::int32_t index,
                         const std::vector<std::int32_t>& anchors) {
    const auto intern = [&](std::string_view name) {
      return buffers_.emplace(name, static_cast<std::int32_t>(buffers_.size())).first->second;
    };
    if (const auto* made = std::get_if<Allocate>(&task.body))
      return {index, true, made->kind, made->bytes, intern(made->buffer), anchors};
    return {index, false, {}, {}, intern(std::get<Free>(task.body).buffer), anchors};
  }

  static Launch launch(const Task& task, std::int32_t index, const PreparedBlock& block) {
    Launch out{index, task.stream.value(), false, task.after.empty(), task.launches, {}, {}};
    if (const auto* work = std::get_if<HostWork>(&task.body)) {
      out.stream = kHost;
      out.host_time = work->time;
      return out;
    }
    if (std::holds_alternative<Sync>(task.body)) {
      out.stream = kHost;
      out.sync = true;
    }
    out.waits = finishing(task, block);
    std::erase_if(out.waits, [&](std::int32_t wait) {
      const std::int32_t stream = block.launches[at(wait)].stream;
      return stream == kHost || stream == out.stream;
    });
    return out;
  }

  std::map<std::string_view, std::int32_t>& buffers_;
};

// What is known while a role's calls are walked in the order of issue.
class Walk {
 public:
  Walk(std::size_t streams, Seconds launch_time, Expansion& out)
      : streams_(streams),
        launch_time_(launch_time),
        out_(out),
        last_(streams, kNone),
        waited_(streams * streams, kNone),
        host_waited_(streams, kNone),
        of_call_(streams, kNone),
        at_gate_(streams, false) {}

  // From here on, tasks without `after` wait for `latest_of_stream`. Only the first such task on
  // each stream gets the dependency; later ones on the stream run after it anyway.
  void enter_call(const std::vector<std::int32_t>& latest_of_stream, bool any) {
    of_call_ = latest_of_stream;
    std::fill(at_gate_.begin(), at_gate_.end(), any);
  }

  void issue(const Launch& launch, std::int32_t call, std::int32_t iteration, std::int32_t base) {
    const auto own = static_cast<std::int32_t>(out_.instances.size());
    out_.begin.push_back(static_cast<std::uint32_t>(out_.flat.size()));
    if (launch.stream != kHost)
      wait_on_device(launch, base);
    else if (launch.sync)
      wait_on_host(launch, base);
    if (launch.stream != kHost) {
      host_offset_ += launch.launches * launch_time_;
      last_[at(launch.stream)] = own;
    }
    out_.instances.push_back(
        {call, iteration, launch.task, launch.stream, host_sync_, host_offset_});
    if (launch.sync) {
      host_sync_ = own;
      host_offset_ = Seconds();
    } else if (launch.stream == kHost) {
      host_offset_ += launch.host_time;
    }
  }

 private:
  void wait_on_device(const Launch& launch, std::int32_t base) {
    const std::size_t stream = at(launch.stream);
    if (last_[stream] != kNone) out_.flat.push_back(last_[stream]);
    std::int32_t* known = &waited_[stream * streams_];
    for (const std::int32_t wait : launch.waits) wait_for(base + wait, known);
    if (!launch.waits_for_call || !at_gate_[stream]) return;
    at_gate_[stream] = false;
    for (std::size_t other = 0; other < streams_; ++other)
      if (other != stream && of_call_[other] != kNone) wait_for(of_call_[other], known);
  }

  void wait_on_host(const Launch& sync, std::int32_t base) {
    if (!sync.waits_for_call) {
      for (const std::int32_t wait : sync.waits) wait_for(base + wait, host_waited_.data());
      return;
    }
    for (std::size_t stream = 0; stream < streams_; ++stream)
      if (last_[stream] != kNone) wait_for(last_[stream], host_waited_.data());
  }

  void wait_for(std::int32_t instance, std::int32_t* known) {
    const std::size_t stream = at(out_.instances[at(instance)].stream);
    if (instance <= std::max(known[stream], host_waited_[stream])) return;
    known[stream] = instance;
    out_.flat.push_back(instance);
  }

  std::size_t streams_;
  Seconds launch_time_;
  Expansion& out_;
  std::vector<std::int32_t> last_;         // Per stream.
  std::vector<std::int32_t> waited_;       // [waiting stream][other stream]: latest waited for.
  std::vector<std::int32_t> host_waited_;  // [other stream]: latest that a Sync waited for.
  std::vector<std::int32_t> of_call_;
  std::vector<bool> at_gate_;
  std::int32_t host_sync_ = kNone;
  Seconds host_offset_;
};

// Live buffers: open addressing, because the lookup is most of what memory_events does.
class LiveBuffers {
 public:
  struct Key {
    std::int32_t buffer, chunk, micro_batch, layer;
    bool operator==(const Key&) const = default;
  };
  explicit LiveBuffers(std::size_t keys) {
    std::size_t capacity = 16;
    while (capacity < 2 * keys) capacity *= 2;
    slots_.resize(capacity);
  }
  // The event that allocated the buffer and has not been freed, or kNone. Writable.
  // \pre no more distinct keys are `put` than the constructor was told.
  std::int32_t& put(const Key& key) {
    Slot& slot = find(key);
    slot.used = true;
    slot.key = key;
    return slot.event;
  }
  std::int32_t* get(const Key& key) {
    Slot& slot = find(key);
    return slot.used ? &slot.event : nullptr;
  }
  std::vector<std::int32_t> remaining() const {
    std::vector<std::int32_t> events;
    for (const Slot& slot : slots_)
      if (slot.used && slot.event != kNone) events.push_back(slot.event);
    std::sort(events.begin(), events.end());
    return events;
  }

 private:
  struct Slot {
    Key key{};
    std::int32_t event = kNone;
    bool used = false;
  };
  static std::uint64_t hash(const Key& key) {
    const auto join = [](std::int32_t high, std::int32_t low) {
      return (std::uint64_t{static_cast<std::uint32_t>(high)} << 32) |
             static_cast<std::uint32_t>(low);
    };
    return finalised(join(key.buffer, key.chunk) * 0x9e3779b97f4a7c15u +
                     join(key.micro_batch, key.layer));
  }
  Slot& find(const Key& key) {
    std::size_t i = static_cast<std::size_t>(hash(key)) & (slots_.size() - 1);
    while (slots_[i].used && !(slots_[i].key == key)) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }
  std::vector<Slot> slots_;
};

}  // namespace

struct Expander::Prepared {
  const Program* program;
  std::vector<PreparedBlock> blocks;

  const PreparedBlock& block_of(const Call& call) const { return blocks[call.block.index()]; }
};

std::int64_t count_instances(const Program& program, const Role& role) {
  std::vector<std::int64_t> launches;
  for (const Block& block : program.blocks) launches.push_back(launches_in(block));
  std::int64_t count = 0;
  for (const Call& call : role.calls) count += call.repeat * launches[call.block.index()];
  return count;
}

Expander::Expander(const Program& program) {
  auto prepared = std::make_unique<Prepared>();
  prepared->program = &program;
  std::map<std::string_view, std::int32_t> buffers;
  BlockBuilder builder(buffers);
  for (const Block& block : program.blocks) prepared->blocks.push_back(builder.build(block));
  prepared_ = std::move(prepared);
}

Expander::~Expander() = default;

Expansion Expander::expand(std::size_t role) const {
  return expand(role, prepared_->program->launch_time);
}

Expansion Expander::expand(std::size_t role, Seconds launch_time) const {
  const Program& program = *prepared_->program;
  const auto& calls = program.roles[role].calls;
  const std::int64_t count = count_instances(program, program.roles[role]);
  FORESHARD_CHECK(count <= kMaxInstancesPerRole);

  Expansion out;
  out.instances.reserve(static_cast<std::size_t>(count));
  out.begin.reserve(static_cast<std::size_t>(count) + 1);
  out.flat.reserve(static_cast<std::size_t>(count) * 2);
  out.first_of_call.reserve(calls.size() + 1);
  Walk walk(program.streams.size(), launch_time, out);
  std::vector<std::int32_t> latest(program.streams.size());

  for (std::size_t c = 0; c < calls.size(); ++c) {
    const Call& call = calls[c];
    out.first_of_call.push_back(static_cast<std::int32_t>(out.instances.size()));
    std::fill(latest.begin(), latest.end(), kNone);
    for (const CallDependency& dependency : call.after) {
      const PreparedBlock& from = prepared_->block_of(calls[at(dependency.call)]);
      const auto launches = static_cast<std::int32_t>(from.launches.size());
      const std::int32_t last_iteration = out.first_of_call[at(dependency.call) + 1] - launches;
      const auto& waits =
          dependency.task < 0 ? from.last_of_streams : from.anchors_of_task[at(dependency.task)];
      for (const std::int32_t wait : waits) {
        const std::int32_t stream = from.launches[at(wait)].stream;
        if (stream != kHost)
          latest[at(stream)] = std::max(latest[at(stream)], last_iteration + wait);
      }
    }
    walk.enter_call(latest, !call.after.empty());
    const PreparedBlock& block = prepared_->block_of(call);
    for (std::int32_t k = 0; k < call.repeat; ++k) {
      const auto base = static_cast<std::int32_t>(out.instances.size());
      for (const Launch& launch : block.launches)
        walk.issue(launch, static_cast<std::int32_t>(c), k, base);
    }
  }
  out.first_of_call.push_back(static_cast<std::int32_t>(out.instances.size()));
  out.begin.push_back(static_cast<std::uint32_t>(out.flat.size()));
  return out;
}

MemoryEvents Expander::memory_events(std::size_t role, const Expansion& expansion) const {
  const auto& calls = prepared_->program->roles[role].calls;
  std::size_t count = 0;
  for (const Call& call : calls)
    count += static_cast<std::size_t>(call.repeat) * prepared_->block_of(call).memory.size();

  MemoryEvents out;
  out.events.reserve(count);
  out.anchors.reserve(count);
  LiveBuffers live(count);
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const Call& call = calls[c];
    const PreparedBlock& block = prepared_->block_of(call);
    for (std::int32_t k = 0; k < call.repeat; ++k) {
      const std::int32_t base =
          expansion.first_of_call[c] + k * static_cast<std::int32_t>(block.launches.size());
      for (const MemoryTask& task : block.memory) {
        MemoryEvent event{task.allocate, task.kind, task.bytes, static_cast<std::int32_t>(c), k,
                          task.task,     0,         0};
        const LiveBuffers::Key key{task.buffer, call.chunk, call.micro_batch, call.layer(k)};
        const auto own = static_cast<std::int32_t>(out.events.size());
        if (task.allocate) {
          std::int32_t& holder = live.put(key);
          if (holder != kNone) out.doubled.push_back(event);
          holder = own;
        } else {
          std::int32_t* holder = live.get(key);
          if (!holder || *holder == kNone) {
            out.unmatched.push_back(event);
            continue;
          }
          event.kind = out.events[at(*holder)].kind;
          event.bytes = out.events[at(*holder)].bytes;
          *holder = kNone;
        }
        event.anchors_begin = static_cast<std::uint32_t>(out.anchors.size());
        for (const std::int32_t anchor : task.anchors) out.anchors.push_back(base + anchor);
        event.anchors_end = static_cast<std::uint32_t>(out.anchors.size());
        out.events.push_back(event);
      }
    }
  }
  for (const std::int32_t event : live.remaining()) out.unfreed.push_back(out.events[at(event)]);
  return out;
}

}  // namespace foreshard::program
