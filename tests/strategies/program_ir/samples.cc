#include "tests/strategies/program_ir/samples.h"

#include <algorithm>
#include <numeric>

#include "base/units.h"

namespace foreshard::program {
namespace {

constexpr StreamId kCompute{0}, kTensor{1}, kData{2}, kSendForward{3}, kReceiveForward{4},
    kSendBackward{5}, kReceiveBackward{6};

Task kernel(const std::string& name, std::int64_t m, std::vector<std::int32_t> after = {}) {
  return {name, Kernel(Gemm{.m = m, .n = 256, .k = 256}), kCompute, std::move(after)};
}

Task transfer(CollectiveKind kind, StreamId stream, std::int64_t peer, const std::string& tag) {
  return {tag,
          Communication{.kind = kind,
                        .group = AxisPeer{1, peer},
                        .bytes = 1_MiB,
                        .purpose = Purpose::kPipeline,
                        .tag = tag},
          stream,
          {}};
}

// Blocks of one stage, appended to a program; the names carry the stage.
class StageBuilder {
 public:
  StageBuilder(Program& program, int stage, int stages)
      : program_(program), stage_(stage), stages_(stages) {}

  Role role(int micro_batches, int layers) {
    Role role{.name = "stage " + std::to_string(stage_), .ranks = {}, .calls = {}, .memory = {}};
    for (std::int32_t r = 0; r < program_.ranks(); ++r)
      if (r / 2 % stages_ == stage_) role.ranks.push_back(r);
    role.memory.push_back({MemoryKind::kParameters, 1_GiB});
    const BlockId receive_forward =
        transfer_block(CollectiveKind::kReceive, kReceiveForward, stage_ - 1, "forward");
    const BlockId send_forward =
        transfer_block(CollectiveKind::kSend, kSendForward, stage_ + 1, "forward");
    const BlockId receive_backward =
        transfer_block(CollectiveKind::kReceive, kReceiveBackward, stage_ + 1, "backward");
    const BlockId send_backward =
        transfer_block(CollectiveKind::kSend, kSendBackward, stage_ - 1, "backward");

    const auto pass = [&](bool forward, int micro_batch) {
      const BlockId in = forward ? receive_forward : receive_backward;
      const BlockId out = forward ? send_forward : send_backward;
      const int first = stage_ * layers;
      std::vector<CallDependency> after;
      const auto call = [&](BlockId block, int repeat, int layer, int step) {
        if (!block.valid()) return;
        role.calls.push_back({block, repeat, 0, micro_batch, layer, step, after});
        after = {{static_cast<std::int32_t>(role.calls.size()) - 1, -1}};
      };
      call(in, 1, first, 1);
      if (forward)
        call(BlockId(0), layers, first, 1);
      else
        call(BlockId(1), layers, first + layers - 1, -1);
      call(out, 1, first, 1);
    };
    const int warm_up = std::min(stages_ - 1 - stage_, micro_batches);
    for (int m = 0; m < warm_up; ++m) pass(true, m);
    for (int m = 0; m < micro_batches; ++m) {
      if (warm_up + m < micro_batches) pass(true, warm_up + m);
      pass(false, m);
    }
    role.calls.push_back({.block = BlockId(2)});
    return role;
  }

 private:
  BlockId transfer_block(CollectiveKind kind, StreamId stream, int peer, const std::string& tag) {
    if (peer < 0 || peer >= stages_) return {};
    const std::string verb = kind == CollectiveKind::kSend ? "send " : "receive ";
    program_.blocks.push_back(
        {verb + tag + " of stage " + std::to_string(stage_), {transfer(kind, stream, peer, tag)}});
    return BlockId(static_cast<std::int64_t>(program_.blocks.size()) - 1);
  }

  Program& program_;
  int stage_, stages_;
};

Communication over(std::int32_t axis, CollectiveKind kind, Purpose purpose) {
  return {
      .kind = kind, .group = AxisGroup{{axis}, {}}, .bytes = 4_MiB, .purpose = purpose, .tag = {}};
}

// Random pieces, drawn from one generator.
class Draw {
 public:
  explicit Draw(std::mt19937& random) : random_(random) {}
  std::int32_t below(int n) {
    return std::uniform_int_distribution<std::int32_t>(0, n - 1)(random_);
  }
  bool chance(int percent) { return below(100) < percent; }
  std::int64_t size() { return 1 + (std::int64_t{below(1 << 30)} << below(20)); }
  double real() {
    const double scale = std::ldexp(1.0, below(200) - 100);
    return chance(30) ? below(1000) : std::uniform_real_distribution<double>(0, 1)(random_) * scale;
  }
  std::string name() {
    static const std::vector<std::string> parts{"a", "Z",  "\"", "\\", "/",
                                                "µ", "層", " ",  "😀",  "0"};
    std::string out;
    for (int i = below(6); i-- > 0;) out += parts[static_cast<std::size_t>(below(10))];
    return out;
  }
  template <class T>
  T one_of(int n) {
    return static_cast<T>(below(n));
  }
  std::vector<std::int32_t> list(int most, int limit) {
    std::vector<std::int32_t> out;
    for (int i = below(most + 1); i-- > 0;) out.push_back(below(limit));
    return out;
  }
  std::vector<std::int32_t> runs() {
    std::vector<std::int32_t> out;
    for (int i = below(4); i-- > 0;) {
      std::int32_t value = below(1000);
      const std::int32_t step = below(5);
      for (int k = below(6); k-- > 0; value += step) out.push_back(value);
    }
    if (chance(20)) std::reverse(out.begin(), out.end());
    return out;
  }

  Kernel kernel() {
    const auto dtype = one_of<DType>(8);
    switch (below(3)) {
      case 0:
        return Gemm{size(), size(),     size(),     size(),
                    dtype,  chance(50), chance(50), one_of<Scales>(3)};
      case 1:
        return Attention{size(),
                         size(),
                         size(),
                         size(),
                         size(),
                         size(),
                         size(),
                         chance(50),
                         size(),
                         size(),
                         one_of<Direction>(2),
                         dtype};
      default:
        return Pass{one_of<PassKind>(static_cast<int>(PassKind::kZero) + 1),
                    size(),
                    size(),
                    dtype,
                    0,
                    size()};
    }
  }
  Group group() {
    switch (below(3)) {
      case 0: {
        AxisGroup axes{list(3, 5), {}};
        for (const std::int32_t c : list(3, 9)) axes.coordinates.push_back(c);
        return axes;
      }
      case 1:
        return AxisPeer{below(5), below(9)};
      default: {
        RankGroups groups;
        for (int i = below(3); i-- > 0;) groups.groups.push_back(runs());
        return groups;
      }
    }
  }
  Communication communication() {
    Communication what{one_of<CollectiveKind>(9), group(),
                       Bytes::from_base(real()),  one_of<DType>(8),
                       one_of<Purpose>(5),        name()};
    if (what.kind == CollectiveKind::kExchange)
      for (int i = below(4); i-- > 0;)
        what.transfers.push_back({below(99), below(99), Bytes::from_base(real())});
    if (what.kind == CollectiveKind::kBroadcast) what.roots = runs();
    return what;
  }
  TaskBody body() {
    switch (below(6)) {
      case 0:
        return kernel();
      case 1:
        return communication();
      case 2:
        return Allocate{name(), one_of<MemoryKind>(5), Bytes::from_base(real())};
      case 3:
        return Free{name()};
      case 4:
        return Sync{};
      default:
        return HostWork{Seconds::from_base(real())};
    }
  }

 private:
  std::mt19937& random_;
};

}  // namespace

Program pipeline_program(int stages, int micro_batches, int layers) {
  Program program{.name = "pipeline",
                  .mesh = {{"tensor", 2}, {"pipeline", stages}, {"data", 2}},
                  .device_of_rank = {},
                  .streams = {{"compute"},
                              {"tensor"},
                              {"data"},
                              {"send forward"},
                              {"receive forward"},
                              {"send backward"},
                              {"receive backward"}},
                  .launch_time = 4_us,
                  .blocks = {},
                  .roles = {},
                  .totals = {.samples = 64, .tokens = 131072, .model_flops = 1_TFLOP}};
  const auto reduce = [](const std::string& name) {
    return Task{name, over(0, CollectiveKind::kAllReduce, Purpose::kTensor), kTensor, {1}};
  };
  program.blocks.push_back({"forward",
                            {{"keep", Allocate{"input", MemoryKind::kActivations, 2_MiB}, {}, {}},
                             kernel("gemm", 512),
                             reduce("reduce"),
                             kernel("gemm again", 512, {2})}});
  program.blocks.push_back({"backward",
                            {kernel("gradient", 512),
                             kernel("gemm", 512),
                             reduce("reduce"),
                             kernel("gemm again", 512, {2}),
                             {"drop", Free{"input"}, {}, {3}}}});
  program.blocks.push_back(
      {"step",
       {{"drain", Sync{}, {}, {}},
        {"gradients", over(2, CollectiveKind::kAllReduce, Purpose::kData), kData, {}},
        {"adam", Kernel(Pass{PassKind::kAdam, 1 << 20, 1}), kCompute, {1}, true},
        {"log", HostWork{10_us}, {}, {}}}});
  for (int stage = 0; stage < stages; ++stage)
    program.roles.push_back(StageBuilder(program, stage, stages).role(micro_batches, layers));
  return program;
}

Program random_one_rank_program(std::mt19937& random) {
  Draw draw(random);
  Program program;
  program.mesh = {{"one", 1}};
  program.launch_time = Seconds::from_base(draw.below(3));
  const int streams = 1 + draw.below(4);
  for (int s = 0; s < streams; ++s) program.streams.push_back({"stream " + std::to_string(s)});
  const int blocks = 1 + draw.below(4);
  for (int b = 0; b < blocks; ++b) {
    Block block{"block " + std::to_string(b), {}};
    block.tasks.push_back({"first", Kernel(Pass{.rows = 1}), StreamId(draw.below(streams)), {}});
    for (int t = 1, n = 1 + draw.below(7); t < n; ++t) {
      Task task{
          "task " + std::to_string(t), Kernel(Pass{.rows = 1}), StreamId(draw.below(streams)), {}};
      for (const std::int32_t after : draw.list(2, t))
        if (!std::holds_alternative<Allocate>(block.tasks[static_cast<std::size_t>(after)].body))
          task.after.push_back(after);
      const int kind = draw.below(20);
      if (kind < 2) task.body = Sync{};
      if (kind == 2) task.body = HostWork{Seconds::from_base(draw.below(9))};
      if (kind == 3 || kind == 4) task.body = Free{"buffer"};
      if (kind == 5) task.body = Allocate{"buffer", MemoryKind::kBuffers, 1_B};
      if (kind == 2 || kind == 5) task.after.clear();
      block.tasks.push_back(std::move(task));
    }
    program.blocks.push_back(std::move(block));
  }
  Role role{.name = "only", .ranks = {0}, .calls = {}, .memory = {}};
  for (int c = 0, n = 1 + draw.below(8); c < n; ++c) {
    Call call{.block = BlockId(draw.below(blocks)), .repeat = 1 + draw.below(3)};
    if (c > 0)
      for (const std::int32_t on : draw.list(2, c)) {
        const auto& tasks =
            program.blocks[role.calls[static_cast<std::size_t>(on)].block.index()].tasks;
        const std::int32_t task = draw.below(static_cast<int>(tasks.size()) + 1) - 1;
        if (task < 0 ||
            !std::holds_alternative<Allocate>(tasks[static_cast<std::size_t>(task)].body))
          call.after.push_back({on, task});
      }
    role.calls.push_back(std::move(call));
  }
  program.roles.push_back(std::move(role));
  return program;
}

Program random_program(std::mt19937& random) {
  Draw draw(random);
  Program program;
  program.name = draw.name();
  for (int i = draw.below(4); i-- > 0;) program.mesh.push_back({draw.name(), 1 + draw.below(64)});
  if (draw.chance(50)) program.device_of_rank = draw.runs();
  for (int i = draw.below(4); i-- > 0;) program.streams.push_back({draw.name()});
  program.launch_time = Seconds::from_base(draw.real());
  if (draw.chance(30))
    for (int i = 1 + draw.below(9); i-- > 0;)
      program.launch_time_of_rank.push_back(1_us * draw.below(3));
  for (int i = draw.below(5); i-- > 0;) {
    Block block{draw.name(), {}};
    for (int t = draw.below(6); t-- > 0;) {
      Task task{draw.name(), draw.body(), {}, draw.list(3, 10), draw.chance(20)};
      if (draw.chance(70)) task.stream = StreamId(draw.below(9));
      block.tasks.push_back(std::move(task));
    }
    program.blocks.push_back(std::move(block));
  }
  for (int i = draw.below(4); i-- > 0;) {
    Role role{draw.name(), draw.runs(), {}, {}};
    for (int c = draw.below(5); c-- > 0;) {
      Call call{BlockId(draw.below(9)),
                draw.below(99),
                draw.below(9),
                draw.below(9),
                draw.below(99) - 50,
                draw.below(5) - 2,
                {}};
      for (int d = draw.below(3); d-- > 0;)
        call.after.push_back({draw.below(9), draw.below(9) - 1});
      role.calls.push_back(std::move(call));
    }
    for (int m = draw.below(3); m-- > 0;)
      role.memory.push_back({draw.one_of<MemoryKind>(5), Bytes::from_base(draw.real())});
    program.roles.push_back(std::move(role));
  }
  program.totals = {draw.real(), draw.real(), Flops::from_base(draw.real()), draw.name()};
  return program;
}

}  // namespace foreshard::program
