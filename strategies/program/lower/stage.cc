#include "strategies/program/lower/stage.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <utility>

#include "base/check.h"

#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/optimizer_block.h"
#include "strategies/program/lower/resident.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::lower {
namespace {

using program::Allocate;
using program::Block;
using program::BlockId;
using program::Call;
using program::CollectiveKind;
using program::Communication;
using program::Free;
using program::MemoryKind;
using program::Program;
using program::Purpose;
using program::Role;
using program::Task;
using schedule::Slot;
using Gather = StateSharding::Gather;
using Reduce = StateSharding::Reduce;

constexpr std::int32_t kNoCall = -1;

Axis axis_named(const std::vector<MeshAxis>& mesh, const std::string& name) {
  const auto it = std::ranges::find(mesh, name, &MeshAxis::name);
  FORESHARD_CHECK(it != mesh.end());
  return static_cast<Axis>(it - mesh.begin());
}

Task memory_task(std::string name, program::TaskBody body) {
  return Task{.name = std::move(name), .body = std::move(body)};
}

// A block of the model as a stage runs it: its parameters are gathered and reduced together.
struct Unit {
  std::string kind;  // "embedding", "layer" or "head"
  const LoweredBlock& lowered;
  std::int32_t layer = 0;

  std::string key() const { return kind + std::to_string(layer); }
};

// Writes the calls of one stage.
class Stage {
 public:
  Stage(Program& program, const Model& model, const Strategy& strategy, const LoweredModel& blocks,
        std::int64_t stage)
      : program_(program),
        model_(model),
        strategy_(strategy),
        framework_(*strategy.framework),
        states_(state_sharding(strategy)),
        blocks_(blocks),
        stage_(stage),
        split_(layers_of_stages(strategy, model)),
        pipeline_(axis_named(blocks.mesh, "pipeline")),
        data_(axis_named(blocks.mesh, "data")) {}

  Result<Role> run() {
    auto order =
        schedule::order(strategy_.schedule,
                        {.stage = static_cast<std::int32_t>(stage_),
                         .stages = static_cast<std::int32_t>(strategy_.pipeline_parallel),
                         .chunks = static_cast<std::int32_t>(strategy_.virtual_stages),
                         .micro_batches = static_cast<std::int32_t>(strategy_.micro_batches())});
    if (!order) return order.error();
    std::vector<Slot> slots = *std::move(order);
    if (!trains())
      std::erase_if(slots, [](const Slot& s) { return s.direction == Direction::kBackward; });
    for (const Slot& slot : slots) {
      if (slot.direction == Direction::kBackward) last_backward_[slot.chunk] = slot.micro_batch;
    }
    role_.name = fmt::format("stage {}", stage_);
    role_.memory = resident_memory(strategy_, model_, blocks_, stage_);
    if (states_.gather == Gather::kStartOfStep) {
      for (std::int64_t chunk = 0; chunk < strategy_.virtual_stages; ++chunk) gather_chunk(chunk);
    }
    for (const Slot& slot : slots) {
      slot.direction == Direction::kForward ? forward(slot) : backward(slot);
    }
    if (trains()) {
      reduce_gradients_at_end();
      optimizer();
    }
    return std::move(role_);
  }

 private:
  // --- what this stage has -----------------------------------------------------------------
  std::int64_t piece(std::int64_t chunk) const {
    return chunk * strategy_.pipeline_parallel + stage_;
  }
  bool has_embedding(std::int64_t chunk) const { return piece(chunk) == 0; }
  bool has_head(std::int64_t chunk) const { return piece(chunk) == strategy_.stages() - 1; }
  std::int64_t layers(std::int64_t chunk) const {
    return split_[static_cast<std::size_t>(piece(chunk))];
  }
  std::int32_t first_layer(std::int64_t chunk) const {
    return static_cast<std::int32_t>(
        std::accumulate(split_.begin(), split_.begin() + piece(chunk), std::int64_t{0}));
  }
  DType gradient_dtype() const { return framework_.gradients_of(strategy_.precision); }
  bool trains() const { return strategy_.mode == Mode::kTrain; }
  Prefetch prefetch(const Slot& slot) const {
    return slot.direction == Direction::kForward ? framework_.shards.forward_prefetch
                                                 : framework_.shards.backward_prefetch;
  }
  // The output projection of a one-stage model with tied embeddings is the embedding itself.
  std::int64_t duplicate_elements(std::int64_t chunk) const {
    return model_.tied_embeddings && has_embedding(chunk) && has_head(chunk)
               ? blocks_.head.largest_parameter
               : 0;
  }

  Unit embedding() const { return {"embedding", blocks_.embedding}; }
  Unit head() const { return {"head", blocks_.head}; }
  Unit layer_unit(std::int32_t layer) const { return {"layer", blocks_.layer, layer}; }

  // Elements of the stage's parameters whose gradients are partial over exactly `also` and data.
  template <class Visit>
  void visit_parameters(Visit visit) const {
    for (std::int64_t chunk = 0; chunk < strategy_.virtual_stages; ++chunk) {
      for (const auto& group : blocks_.layer.parameters) visit(group, layers(chunk));
      if (has_embedding(chunk)) {
        for (const auto& group : blocks_.embedding.parameters) visit(group, 1);
      }
      if (has_head(chunk)) {
        for (const auto& group : blocks_.head.parameters) visit(group, 1);
      }
    }
  }
  std::int64_t elements() const { return elements_of_stage(strategy_, model_, blocks_, stage_); }

  // --- writing -----------------------------------------------------------------------------
  BlockId block(Block wanted) {
    const auto it = std::ranges::find(program_.blocks, wanted.name, &Block::name);
    if (it != program_.blocks.end()) {
      FORESHARD_CHECK(*it == wanted);
      return BlockId{it - program_.blocks.begin()};
    }
    program_.blocks.push_back(std::move(wanted));
    return BlockId{static_cast<std::int64_t>(program_.blocks.size()) - 1};
  }

  std::int32_t call(BlockId id, Call how, std::vector<std::int32_t> after) {
    how.block = id;
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    for (const std::int32_t earlier : after) {
      if (earlier != kNoCall) how.after.push_back({.call = earlier});
    }
    role_.calls.push_back(std::move(how));
    return static_cast<std::int32_t>(role_.calls.size()) - 1;
  }

  Call at(const Slot& slot) const {
    return Call{.chunk = slot.chunk, .micro_batch = slot.micro_batch};
  }

  // A block with one communication: everything between blocks.
  Block communication(const std::string& name, Communication what, StreamIndex where) const {
    Block block{.name = name};
    block.tasks.push_back(Task{.name = name, .body = std::move(what), .stream = stream(where)});
    return block;
  }

  // --- passes ------------------------------------------------------------------------------
  // Forward or backward tasks with what they keep in memory around them. Where ranks hold shards of
  // the gradients, the whole gradient of a unit is there from its backward pass until it is
  // reduced; that of a tied table since the output projection's.
  Block with_memory(const Unit& unit, Direction direction, std::int32_t chunk) const {
    const LoweredBlock& lowered = unit.lowered;
    const bool is_forward = direction == Direction::kForward;
    Block block = is_forward ? lowered.forward : lowered.backward;
    const Bytes transient = is_forward ? lowered.transient_forward : lowered.transient_backward;
    const std::string kind = block.name.substr(0, block.name.find('.'));
    std::vector<Task> tasks;
    if (is_forward && lowered.saved > 0_B)
      tasks.push_back(memory_task(
          "keep", Allocate{kind + ".activations", MemoryKind::kActivations, lowered.saved}));
    if (transient > 0_B)
      tasks.push_back(
          memory_task("work", Allocate{block.name + ".work", MemoryKind::kBuffers, transient}));
    if (!is_forward && states_.cuts_gradients) {
      const bool tied = duplicate_elements(chunk) > 0;
      if (tied && unit.kind == "head") tasks.push_back(whole_gradient(embedding(), chunk));
      if (!(tied && unit.kind == "embedding") && own_elements(unit, chunk) > 0)
        tasks.push_back(whole_gradient(unit, chunk));
    }
    const auto shift = static_cast<std::int32_t>(tasks.size());
    for (Task& task : block.tasks) {
      for (std::int32_t& index : task.after) index += shift;
      tasks.push_back(std::move(task));
    }
    if (transient > 0_B) tasks.push_back(memory_task("work done", Free{block.name + ".work"}));
    if (states_.cuts_parameters)
      tasks.push_back(memory_task("release", Free{kind + ".parameters"}));
    if (!is_forward && lowered.saved > 0_B)
      tasks.push_back(memory_task("forget", Free{kind + ".activations"}));
    block.tasks = std::move(tasks);
    return block;
  }

  Task whole_gradient(const Unit& unit, std::int64_t chunk) const {
    const Bytes whole = size_of(gradient_dtype()) * static_cast<double>(own_elements(unit, chunk));
    return memory_task("gradients",
                       Allocate{unit.kind + ".gradients", MemoryKind::kGradients, whole});
  }

  // A pass through one block: its parameters are gathered before it (unless `gathered` is the call
  // that did) and given up after it, where ranks hold shards; its gradients are reduced beside
  // what follows.
  void pass(const Unit& unit, const Slot& slot, std::vector<std::int32_t> after) {
    run(unit, slot, std::move(after));
    reduce(unit, slot);
  }

  // The pass without its reduction.
  void run(const Unit& unit, const Slot& slot, std::vector<std::int32_t> after,
           std::int32_t gathered = kNoCall) {
    if (states_.cuts_parameters && gathered == kNoCall) gathered = gather_shard(unit, slot, last_);
    if (gathers_now(slot)) gathered = early_gathers_.at({slot.chunk, unit.key()});
    after.push_back(gathered);
    // Two whole gradients at most: the third waits until the first is reduced (PyTorch:
    // torch/distributed/fsdp/_fully_shard, FSDPCommContext::reduce_scatter_state). As where
    // parameters are gathered, a unit begins when the one before is done.
    if (slot.direction == Direction::kBackward && states_.cuts_gradients)
      after.insert(after.end(), {last_, reduction_before_});
    Call call_of = at(slot);
    call_of.first_layer = unit.layer;
    last_ = call(block(with_memory(unit, slot.direction, slot.chunk)), std::move(call_of),
                 std::move(after));
  }

  void forward(const Slot& slot) {
    std::vector<std::int32_t> after = std::exchange(unfinished_transfers_, {});
    // A backward pass ends when all is reduced (PyTorch FSDP: _post_backward_final_callback).
    if (states_.cuts_gradients) after.push_back(last_reduction_);
    if (has_embedding(slot.chunk)) {
      pass(embedding(), slot, std::exchange(after, {}));
    } else {
      after.push_back(receive(slot));
    }
    after = pass_layers(slot, std::move(after));
    if (has_head(slot.chunk)) {
      pass(head(), slot, std::move(after));
      await_pass();
    } else {
      await_pass();
      send(slot, std::move(after));
    }
    slot_before_ = std::exchange(last_slot_, last_);
  }

  void backward(const Slot& slot) {
    std::vector<std::int32_t> after = std::exchange(unfinished_transfers_, {});
    if (has_head(slot.chunk)) {
      pass(head(), slot, std::exchange(after, {}));
    } else {
      after.push_back(receive(slot));
    }
    after = pass_layers(slot, std::move(after));
    if (has_embedding(slot.chunk)) {
      pass(embedding(), slot, std::move(after));
      await_pass();
    } else {
      await_pass();
      send(slot, std::move(after));
    }
    slot_before_ = std::exchange(last_slot_, last_);
  }

  // The layers of one slot, in one call where nothing happens between them, else one call each.
  // Returns what is still to be waited for: `after`, if there is no layer.
  std::vector<std::int32_t> pass_layers(const Slot& slot, std::vector<std::int32_t> after) {
    const auto n = static_cast<std::int32_t>(layers(slot.chunk));
    if (n == 0) return after;
    const bool is_forward = slot.direction == Direction::kForward;
    const std::int32_t first = first_layer(slot.chunk);
    const std::int32_t start = is_forward ? first : first + n - 1;
    const std::int32_t step = is_forward ? 1 : -1;
    if (!states_.cuts_parameters && !gathers_now(slot) && !reduces_now(slot)) {
      Call all = at(slot);
      all.repeat = n;
      all.first_layer = start;
      if (n > 1) all.layer_step = step;
      last_ = call(block(with_memory(layer_unit(start), slot.direction, slot.chunk)),
                   std::move(all), std::move(after));
      return {};
    }
    std::int32_t gathered = kNoCall;
    for (std::int32_t i = 0; i < n; ++i) {
      const Unit layer = layer_unit(start + i * step);
      if (states_.cuts_parameters && gathered == kNoCall)
        gathered = gather_shard(layer, slot, last_);
      // At most two layers are whole at a time: the next is gathered when the last one is given up.
      const std::int32_t last = last_;
      const auto gather_next = [&](Prefetch when) {
        const bool wanted = states_.cuts_parameters && i + 1 < n && prefetch(slot) == when;
        return wanted ? gather_shard(layer_unit(start + (i + 1) * step), slot, last) : kNoCall;
      };
      const std::int32_t before = gather_next(Prefetch::kPre);
      run(layer, slot, std::exchange(after, {}), gathered);
      const std::int32_t behind = gather_next(Prefetch::kPost);
      reduce(layer, slot);
      gathered = before == kNoCall ? behind : before;
    }
    return {};
  }

  // --- transfers between stages ------------------------------------------------------------
  Communication transfer(CollectiveKind kind, std::int64_t peer, Direction direction) const {
    double count = 1;
    for (const auto extent :
         local_shape(blocks_.boundary_shape, blocks_.boundary_sent, blocks_.mesh))
      count *= static_cast<double>(extent);
    return {.kind = kind,
            .group = program::AxisPeer{.axis = pipeline_, .coordinate = peer},
            .bytes = size_of(strategy_.precision) * count,
            .dtype = strategy_.precision,
            .purpose = Purpose::kPipeline,
            .tag = direction == Direction::kForward ? "forward" : "backward"};
  }

  std::int64_t previous() const {
    return (stage_ + strategy_.pipeline_parallel - 1) % strategy_.pipeline_parallel;
  }
  std::int64_t next() const { return (stage_ + 1) % strategy_.pipeline_parallel; }

  std::int32_t receive(const Slot& slot) {
    const bool is_forward = slot.direction == Direction::kForward;
    const std::int64_t peer = is_forward ? previous() : next();
    const std::string name =
        fmt::format("receive_{}.from{}", is_forward ? "forward" : "backward", peer);
    Block receive = communication(name, transfer(CollectiveKind::kReceive, peer, slot.direction),
                                  is_forward ? kReceiveForwardStream : kReceiveBackwardStream);
    append_reshard(receive, "boundary", blocks_.boundary_shape, strategy_.precision,
                   blocks_.boundary_sent, blocks_.boundary, blocks_.mesh, stream(kTensorStream),
                   {0});
    // Stages of an interleaved pipeline wait for each other in a ring: a receive has to be ready
    // one slot ahead (Megatron-LM posts those of the next forward and the next backward pass
    // together), and a host that waited for its sends too would never come to issue it.
    const bool in_ring = strategy_.virtual_stages > 1;
    std::vector<std::int32_t> after;
    if (blocking()) after.push_back(in_ring ? slot_before_ : last_slot_);
    if (framework_.pipeline_host_sync && in_ring)
      receive.tasks.push_back(Task{.name = "sync", .body = program::Sync{}, .after = {0}});
    const std::int32_t received = call(block(std::move(receive)), at(slot), std::move(after));
    if (framework_.pipeline_host_sync && !in_ring) host_sync("pipeline.sync");
    return received;
  }

  void send(const Slot& slot, std::vector<std::int32_t> after) {
    after.push_back(last_);
    const bool is_forward = slot.direction == Direction::kForward;
    const std::int64_t peer = is_forward ? next() : previous();
    const std::string name = fmt::format("send_{}.to{}", is_forward ? "forward" : "backward", peer);
    const std::int32_t sent =
        call(block(communication(name, transfer(CollectiveKind::kSend, peer, slot.direction),
                                 is_forward ? kSendForwardStream : kSendBackwardStream)),
             at(slot), std::move(after));
    if (blocking()) unfinished_transfers_.push_back(sent);
  }

  bool blocking() const { return framework_.pipeline_transfers == PipelineTransfers::kBlocking; }

  void host_sync(const std::string& name) {
    Block wait{.name = name};
    wait.tasks.push_back(Task{.name = name, .body = program::Sync{}});
    call(block(std::move(wait)), {}, {});
  }

  // Stages of an interleaved pipeline would wait for each other's transfers in a ring.
  void await_pass() {
    if (framework_.pass_host_sync && strategy_.virtual_stages == 1) host_sync("pass.sync");
  }

  // --- data parallelism --------------------------------------------------------------------
  bool reduces_now(const Slot& slot) const {
    if (slot.direction == Direction::kForward) return false;
    const bool last = slot.micro_batch == last_backward_.at(slot.chunk);
    return states_.cuts_gradients || (states_.reduce == Reduce::kLastMicroBatch && last);
  }
  bool gathers_now(const Slot& slot) const {
    return slot.direction == Direction::kForward && states_.gather == Gather::kStartOfStep &&
           slot.micro_batch == 0;
  }

  // Gradients of `count` elements: partial over the data axis; then whole, or in shards.
  Block reduction(const std::string& name, std::int64_t count) const {
    Block block{.name = name};
    const std::vector<std::int64_t> shape{count};
    Attribute from = replicated(1);
    from.partial = sums_over({data_});
    Attribute to = replicated(1);
    if (states_.cuts_optimizer) to.dims[0] = {data_};
    append_reshard(block, "gradients", shape, gradient_dtype(), from, to, blocks_.mesh,
                   stream(kDataStream), {});
    return block;
  }

  // Parameters of `count` elements: from shards to whole.
  Block gathering(const std::string& name, std::int64_t count) const {
    Block block{.name = name};
    const std::vector<std::int64_t> shape{count};
    Attribute from = replicated(1);
    from.dims[0] = {data_};
    append_reshard(block, "parameters", shape, strategy_.precision, from, replicated(1),
                   blocks_.mesh, stream(kDataStream), {});
    return block;
  }

  // Each parameter by itself, the host waiting for it. A pass that computes activations again
  // gathers for that, and again for the gradients.
  Block gathering_each(const Unit& unit, const Slot& slot) const {
    const bool twice = slot.direction == Direction::kBackward &&
                       strategy_.recompute == Recompute::kFull && unit.kind == "layer";
    Block gather{.name = unit.kind + (twice ? ".gather_twice" : ".gather_each")};
    for (int pass = 0; pass < (twice ? 2 : 1); ++pass) {
      for (const std::int64_t count : unit.lowered.parameter_sizes) {
        if (count <= *framework_.shards.gather_each) continue;
        Block one = gathering(gather.name, count);
        FORESHARD_CHECK(one.tasks.size() == 1);
        gather.tasks.push_back(std::move(one.tasks.front()));
        const auto gathered = static_cast<std::int32_t>(gather.tasks.size()) - 1;
        gather.tasks.push_back(
            Task{.name = "gather.sync", .body = program::Sync{}, .after = {gathered}});
      }
    }
    return gather;
  }

  void reduce(const Unit& unit, const Slot& slot) {
    if (!reduces_now(slot)) return;
    const std::int64_t count = own_elements(unit, slot.chunk);
    if (count == 0) return;
    Call one = at(slot);
    one.first_layer = unit.layer;
    Block reduced = reduction(unit.kind + ".reduce", count);
    if (states_.cuts_gradients)
      reduced.tasks.push_back(memory_task("release", Free{unit.kind + ".gradients"}));
    reduction_before_ = last_reduction_;
    last_reduction_ = call(block(std::move(reduced)), std::move(one), {last_});
  }

  // The tied output projection of a stage that has the embedding too is reduced and gathered with
  // that: its gradient is complete when the embedding's is.
  std::int64_t own_elements(const Unit& unit, std::int64_t chunk) const {
    return unit.lowered.elements() - (unit.kind == "head" ? duplicate_elements(chunk) : 0);
  }

  // `last`: the pass behind which there is room for the unit.
  std::int32_t gather_shard(const Unit& unit, const Slot& slot, std::int32_t last) {
    Block gather = framework_.shards.gather_each
                       ? gathering_each(unit, slot)
                       : gathering(unit.kind + ".gather", unit.lowered.elements());
    const Bytes whole = size_of(strategy_.precision) * static_cast<double>(unit.lowered.elements());
    std::vector<Task> first{
        memory_task("keep", Allocate{unit.kind + ".parameters", MemoryKind::kParameters, whole})};
    // A kernel on the stream of the gather that follows.
    if (element_bytes(strategy_).parameter != size_of(strategy_.precision))
      first.push_back(Task{.name = "cast",
                           .body = Kernel{Pass{.kind = PassKind::kCast,
                                               .rows = states_.shard_of(unit.lowered.elements()),
                                               .dtype = strategy_.precision}},
                           .stream = stream(kDataStream)});
    for (Task& task : gather.tasks) {
      for (std::int32_t& index : task.after) index += static_cast<std::int32_t>(first.size());
    }
    gather.tasks.insert(gather.tasks.begin(), first.begin(), first.end());
    Call one = at(slot);
    one.first_layer = unit.layer;
    return call(block(std::move(gather)), std::move(one), {last});
  }

  void gather_early(std::int64_t chunk, const Unit& unit) {
    const auto index = static_cast<std::int32_t>(chunk);
    early_gathers_[{index, unit.key()}] =
        call(block(gathering(unit.kind + ".gather", own_elements(unit, chunk))),
             Call{.chunk = index, .first_layer = unit.layer}, {});
  }

  void gather_chunk(std::int64_t chunk) {
    if (has_embedding(chunk)) gather_early(chunk, embedding());
    for (std::int32_t i = 0; i < layers(chunk); ++i)
      gather_early(chunk, layer_unit(first_layer(chunk) + i));
    if (has_head(chunk)) gather_early(chunk, head());
  }

  // --- end of the step ---------------------------------------------------------------------
  void reduce_gradients_at_end() {
    if (states_.reduce == Reduce::kEndOfStep) {
      last_reduction_ =
          call(block(reduction(fmt::format("gradients.reduce.{}", elements()), elements())), {},
               {last_});
    }
    // Gradients of tensors that the tensor-parallel ranks hold copies of, but of which each saw its
    // part of the sequence.
    std::map<std::vector<Axis>, std::int64_t> partial;
    visit_parameters([&](const ParameterGroup& group, std::int64_t times) {
      if (!group.also_partial.empty()) partial[group.also_partial] += group.elements * times;
    });
    for (const auto& [axes, count] : partial) {
      Block block_of{.name = fmt::format("replicated_gradients.reduce.{}", count)};
      Attribute from = replicated(1);
      from.partial = sums_over(axes);
      append_reshard(block_of, "replicated_gradients", {count}, gradient_dtype(), from,
                     replicated(1), blocks_.mesh, stream(kTensorStream), {});
      last_replicated_ = call(block(std::move(block_of)), {}, {last_, last_reduction_});
    }
    reduce_tied_embedding();
  }

  // First and last stage hold a copy each of a tied embedding and add up their gradients.
  void reduce_tied_embedding() {
    const bool first = stage_ == 0;
    const bool last = stage_ == strategy_.pipeline_parallel - 1;
    if (!model_.tied_embeddings || first == last) return;
    const std::string name = "tied_embedding.reduce";
    Communication sum{
        .kind = CollectiveKind::kAllReduce,
        .group = program::AxisGroup{.axes = {pipeline_},
                                    .coordinates = {0, strategy_.pipeline_parallel - 1}},
        .bytes = size_of(gradient_dtype()) * static_cast<double>(blocks_.head.largest_parameter),
        .dtype = gradient_dtype(),
        .purpose = Purpose::kPipeline,
        .tag = name};
    last_tied_ = call(block(communication(name, std::move(sum), kTensorStream)), {},
                      {last_, last_reduction_});
  }

  void optimizer() {
    const std::int64_t count = states_.cuts_optimizer ? states_.shard_of(elements()) : elements();
    std::vector<std::int32_t> after = std::exchange(unfinished_transfers_, {});
    after.insert(after.end(), {last_, last_reduction_, last_replicated_, last_tied_});
    // Data-parallel ranks hold equal gradients unless each has a shard of the optimizer's states.
    std::vector<Axis> spread;
    for (Axis axis = 0; axis < static_cast<Axis>(blocks_.mesh.size()); ++axis) {
      if (axis != data_ || states_.cuts_optimizer) spread.push_back(axis);
    }
    const std::int32_t stepped =
        call(block(optimizer_block(fmt::format("optimizer.{}", count), strategy_, blocks_.mesh,
                                   spread, count)),
             {}, std::move(after));
    if (states_.gather == Gather::kEndOfStep) {
      call(block(gathering(fmt::format("parameters.gather.{}", elements()), elements())), {},
           {stepped});
    }
  }

  Program& program_;
  const Model& model_;
  const Strategy& strategy_;
  const Framework& framework_;
  StateSharding states_;
  const LoweredModel& blocks_;
  std::int64_t stage_;
  std::vector<std::int64_t> split_;
  Axis pipeline_;
  Axis data_;
  Role role_;
  std::map<std::int32_t, std::int32_t> last_backward_;  // by chunk: its last micro-batch
  std::int32_t last_ = kNoCall;                         // the latest pass
  std::int32_t last_slot_ = kNoCall;                    // the last pass of the slot before
  std::int32_t slot_before_ = kNoCall;                  // ... and that of the one before it
  std::int32_t last_reduction_ = kNoCall;
  std::int32_t reduction_before_ = kNoCall;  // ... and the one before it
  std::int32_t last_replicated_ = kNoCall;
  std::int32_t last_tied_ = kNoCall;
  std::vector<std::int32_t> unfinished_transfers_;  // sends that the next pass waits for
  // Calls that gather parameters at the start of the step, by chunk and unit.
  std::map<std::pair<std::int32_t, std::string>, std::int32_t> early_gathers_;
};

}  // namespace

Result<Role> stage_role(Program& program, const Model& model, const Strategy& strategy,
                        const LoweredModel& blocks, std::int64_t stage) {
  return Stage(program, model, strategy, blocks, stage).run();
}

}  // namespace foreshard::lower
