#include "validate/replay/gpu/emulation.h"

#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"

namespace foreshard::replay::gpu::emulation {
namespace {

namespace context = boost::context;

constexpr std::size_t kStack = std::size_t{64} * 1024;

// A barrier of the threads of a block or a warp.
struct Meeting {
  unsigned expected = 0;
  unsigned arrived = 0;
  std::uint64_t round = 0;

  void leave() {
    --expected;
    release_if_complete();
  }
  void release_if_complete() {
    if (arrived == 0 || arrived < expected) return;
    arrived = 0;
    ++round;
  }
};

struct Warp {
  Meeting meeting;
  std::array<std::array<unsigned char, 32 * kSlot>, 2> slots{};
};

struct Fiber {
  context::fiber context{};
  const Meeting* waits_for = nullptr;
  std::uint64_t round = 0;
  bool done = false;
};

struct State {
  dim3 grid{};
  unsigned threads = 0;
  uint3 block{};
  unsigned thread = 0;
  std::vector<unsigned char> shared{};
  const std::function<void()>* kernel = nullptr;
  Meeting meeting{};
  std::vector<Warp> warps{};
  context::pooled_fixedsize_stack stacks{kStack};
  std::vector<Fiber> fibers{};
  context::fiber scheduler{};
};

State& state() {
  static State one;
  return one;
}

void wait(Meeting& meeting) {
  State& s = state();
  ++meeting.arrived;
  const std::uint64_t round = meeting.round;
  meeting.release_if_complete();
  if (meeting.round != round) return;
  Fiber& fiber = s.fibers[s.thread];
  fiber.waits_for = &meeting;
  fiber.round = round;
  s.scheduler = std::move(s.scheduler).resume();
}

context::fiber body(context::fiber&& scheduler) {
  State& s = state();
  s.scheduler = std::move(scheduler);
  (*s.kernel)();
  s.fibers[s.thread].done = true;
  s.warps[s.thread / 32].meeting.leave();
  s.meeting.leave();
  return std::move(s.scheduler);
}

void run_block() {
  State& s = state();
  s.meeting = Meeting{.expected = s.threads};
  s.warps.assign((s.threads + 31) / 32, Warp{});
  for (std::size_t w = 0; w < s.warps.size(); ++w)
    s.warps[w].meeting.expected = std::min(32U, s.threads - static_cast<unsigned>(w) * 32);
  for (Fiber& fiber : s.fibers) {
    fiber.done = false;
    fiber.waits_for = nullptr;
    fiber.context = context::fiber(std::allocator_arg, s.stacks, body);
  }
  for (bool running = true; running;) {
    running = false;
    bool moved = false;
    for (unsigned t = 0; t < s.threads; ++t) {
      Fiber& fiber = s.fibers[t];
      if (fiber.done) continue;
      running = true;
      if (fiber.waits_for != nullptr && fiber.waits_for->round == fiber.round) continue;
      fiber.waits_for = nullptr;
      s.thread = t;
      moved = true;
      fiber.context = std::move(fiber.context).resume();
    }
    FORESHARD_CHECK(moved || !running);  // fails if the kernel's barriers do not match
  }
}

}  // namespace

void run(dim3 grid, unsigned threads, std::size_t shared, const std::function<void()>& kernel) {
  static std::mutex one_at_a_time;  // tests may run ranks as threads
  const std::lock_guard guard(one_at_a_time);
  State& s = state();
  s.grid = grid;
  s.threads = threads;
  s.shared.assign(shared + 16, 0xff);  // NaN in every format, so that missing initialisation shows
  s.kernel = &kernel;
  s.fibers.resize(threads);
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        s.block = {x, y, z};
        run_block();
      }
}

std::set<const void*>& launched() {
  thread_local std::set<const void*> kernels;
  return kernels;
}

uint3 thread_index() {
  return {state().thread, 0, 0};
}
uint3 block_index() {
  return state().block;
}
dim3 block_size() {
  return {state().threads, 1, 1};
}
dim3 grid_size() {
  return state().grid;
}
unsigned char* shared() {
  const auto address = reinterpret_cast<std::uintptr_t>(state().shared.data());
  return state().shared.data() + (16 - address % 16) % 16;
}
std::uint64_t time() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

void barrier() {
  wait(state().meeting);
}

const unsigned char* gather(const void* value, std::size_t bytes) {
  FORESHARD_CHECK(bytes <= kSlot);
  State& s = state();
  const unsigned thread = s.thread;
  Warp& warp = s.warps[thread / 32];
  // A lane may run ahead by one round, so two sets of slots suffice.
  auto& slots = warp.slots[warp.meeting.round % 2];
  std::memcpy(slots.data() + thread % 32 * kSlot, value, bytes);
  wait(warp.meeting);
  return slots.data();
}

void load_tiles(std::uint32_t (&out)[4], const void* row, bool transposed) {
  const unsigned char* all = gather(&row, sizeof(row));
  const unsigned lane = thread_index().x % 32;
  for (unsigned tile = 0; tile < 4; ++tile) {
    const auto at = [&](unsigned r, unsigned c) {
      const unsigned char* address = nullptr;
      std::memcpy(&address, all + (tile * 8 + r) * kSlot, sizeof(address));
      std::uint16_t bits = 0;
      std::memcpy(&bits, address + std::size_t{c} * 2, sizeof(bits));
      return std::uint32_t{bits};
    };
    const unsigned major = lane / 4;
    const unsigned minor = lane % 4 * 2;
    out[tile] = transposed ? at(minor, major) | at(minor + 1, major) << 16U
                           : at(major, minor) | at(major, minor + 1) << 16U;
  }
}

}  // namespace foreshard::replay::gpu::emulation
