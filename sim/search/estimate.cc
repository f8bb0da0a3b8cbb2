#include "sim/search/estimate.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

#include "sim/search/internal/memory.h"
#include "strategies/parallelism/reserve.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/resident.h"

namespace foreshard::search {

struct Estimator::Split {
  lower::LoweredModel blocks;  // its mesh is that of the strategy being estimated
  std::map<std::pair<std::int64_t, Kinds>, ModelTimes> times;  // by ranks of the mesh, by kinds
};
struct Estimator::InFlight {
  std::vector<KeptPasses> chunks;
};

namespace {

using program::Block;
using Gather = StateSharding::Gather;
using Reduce = StateSharding::Reduce;

// The time of one strategy from the times of its blocks.
class Step {
 public:
  Step(const Strategy& strategy, const Model& model, const lower::LoweredModel& blocks,
       const std::vector<const ModelTimes*>& passes, const std::vector<Kinds>& kinds, Times& times,
       Seconds launch_time)
      : strategy_(strategy),
        framework_(*strategy.framework),
        states_(state_sharding(strategy)),
        model_(model),
        blocks_(blocks),
        passes_(passes),
        kinds_(kinds),
        times_(times),
        launch_(launch_time),
        split_(layers_of_stages(strategy, model)),
        data_(axis_named("data")),
        pipeline_(axis_named("pipeline")) {}

  // Fails where a route is missing.
  std::optional<Error> run(Estimate& estimate) {
    const std::int64_t p = strategy_.pipeline_parallel;
    if (auto fault = time_communication()) return fault;
    for (std::int64_t s = 0; s < p; ++s) {
      forward_.push_back(stage_time(s, Direction::kForward));
      backward_.push_back(stage_time(s, Direction::kBackward));
    }
    const Seconds pipeline_end = pipeline_time();
    Seconds end;
    Seconds behind;  // backward passes of the stages before
    for (std::int64_t s = 0; s < p; ++s) {
      end = std::max(end, pipeline_end - behind + exposed_reduction(s));
      behind += backward_[index(s)] / chunks() + transfer_;
    }
    const auto finish = finish_time();
    if (!finish) return finish.error();
    estimate.step = end + *finish;
    estimate.bound = bound();
    return std::nullopt;
  }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  double chunks() const { return static_cast<double>(strategy_.virtual_stages); }
  std::int64_t layers(std::int64_t chunk, std::int64_t stage) const {
    return split_[index(chunk * strategy_.pipeline_parallel + stage)];
  }
  const ModelTimes& passes(std::int64_t stage) const { return *passes_[index(stage)]; }
  bool last_stage(std::int64_t stage) const { return stage == strategy_.pipeline_parallel - 1; }
  bool blocking() const { return framework_.pipeline_transfers == PipelineTransfers::kBlocking; }

  DType gradient_dtype() const { return framework_.gradients_of(strategy_.precision); }

  Axis axis_named(const char* name) const {
    const auto it = std::ranges::find(blocks_.mesh, std::string(name), &MeshAxis::name);
    FORESHARD_CHECK(it != blocks_.mesh.end());
    return static_cast<Axis>(it - blocks_.mesh.begin());
  }

  // The communication that takes `count` elements from one attribute to another.
  Result<Seconds> conversion(std::int64_t count, DType dtype, const Attribute& from,
                             const Attribute& to) {
    Block block;
    lower::append_reshard(block, "", {count}, dtype, from, to, blocks_.mesh,
                          lower::stream(lower::kDataStream), {});
    return chain_time(block, blocks_.mesh, times_);
  }
  Result<Seconds> reduction(std::int64_t count) {
    Attribute from = replicated(1);
    from.partial = sums_over({data_});
    Attribute to = replicated(1);
    if (states_.cuts_optimizer) to.dims[0] = {data_};
    return conversion(count, gradient_dtype(), from, to);
  }
  Result<Seconds> gathering(std::int64_t count) {
    Attribute from = replicated(1);
    from.dims[0] = {data_};
    return conversion(count, strategy_.precision, from, replicated(1));
  }

  // Of the shard of `count` parameters, where it lies in fp32.
  Seconds cast_time(std::int64_t count) {
    if (!states_.cuts_parameters ||
        lower::element_bytes(strategy_).parameter == size_of(strategy_.precision))
      return {};
    const std::int64_t replicas = strategy_.data_parallel;
    const Pass cast{.kind = PassKind::kCast,
                    .rows = (count + replicas - 1) / replicas,
                    .dtype = strategy_.precision};
    Seconds slowest;
    for (const Kinds& kinds : kinds_)
      slowest = std::max(slowest, times_.kernel(cast, kinds).slowest);
    return slowest;
  }

  // A layer's parameters, together or each by itself.
  Result<Seconds> gathering(const lower::LoweredBlock& block) {
    if (!states_.cuts_parameters || !framework_.shards.gather_each)
      return gathering(block.elements());
    Seconds sum;
    for (const std::int64_t count : block.parameter_sizes) {
      if (count <= *framework_.shards.gather_each) continue;
      const auto time = gathering(count);
      if (!time) return time;
      sum += *time + launch_;
    }
    return sum;
  }

  struct UnitTimes {
    Seconds reduce;
    Seconds gather;
  };

  std::optional<Error> time_communication() {
    if (strategy_.pipeline_parallel > 1) {
      const auto time = transfer_time();
      if (!time) return time.error();
      transfer_ = *time;
    }
    if (strategy_.data_parallel == 1) return std::nullopt;
    struct Part {
      const lower::LoweredBlock& block;
      UnitTimes& into;
    };
    for (const Part& part : {Part{blocks_.embedding, embedding_}, Part{blocks_.layer, layer_},
                             Part{blocks_.head, head_}}) {
      const auto reduce = reduction(part.block.elements());
      if (!reduce) return reduce.error();
      part.into.reduce = *reduce;
      if (!states_.cuts_optimizer) continue;
      const auto gather = gathering(part.block);
      if (!gather) return gather.error();
      part.into.gather = *gather + cast_time(part.block.elements());
    }
    if (states_.reduce == Reduce::kEndOfStep || states_.gather == Gather::kEndOfStep) {
      for (std::int64_t s = 0; s < strategy_.pipeline_parallel; ++s) {
        const auto count = lower::elements_of_stage(strategy_, model_, blocks_, s);
        const auto reduce = reduction(count);
        if (!reduce) return reduce.error();
        all_reduced_ = std::max(all_reduced_, *reduce);
        if (!states_.cuts_optimizer) continue;
        const auto gather = gathering(count);
        if (!gather) return gather.error();
        all_gathered_ = std::max(all_gathered_, *gather);
      }
    }
    return std::nullopt;
  }

  // The residual stream to the next stage, in pieces where the framework sends it so.
  Result<Seconds> transfer_time() {
    const Axis tensor = axis_named("tensor");
    Attribute sent = blocks_.boundary;
    const std::int64_t ways = strategy_.tensor_parallel;
    if (framework_.pipeline_scatter_gather && ways > 1 &&
        state_of(sent, tensor).kind == AxisState::Kind::kReplicated &&
        blocks_.boundary_shape[1] % ways == 0)
      sent.dims[1].push_back(tensor);
    double count = 1;
    for (const auto extent : local_shape(blocks_.boundary_shape, sent, blocks_.mesh))
      count *= static_cast<double>(extent);
    const auto time =
        times_.transfer(size_of(strategy_.precision) * count, line_of(blocks_.mesh, pipeline_));
    if (!time) return time;
    Block block;
    lower::append_reshard(block, "", blocks_.boundary_shape, strategy_.precision, sent,
                          blocks_.boundary, blocks_.mesh, lower::stream(lower::kTensorStream), {});
    const auto whole = chain_time(block, blocks_.mesh, times_);
    if (!whole) return whole;
    // After a wait the host has launched nothing ahead.
    return *time + *whole + (framework_.pipeline_host_sync ? launch_ : Seconds{});
  }

  // A micro-batch's passes in one direction, all chunks of a stage.
  Seconds stage_time(std::int64_t stage, Direction direction) const {
    const bool forward = direction == Direction::kForward;
    const auto pass = [&](const PassTimes& of) -> const PassTime& {
      return forward ? of.forward : of.backward;
    };
    Seconds time;
    std::int64_t launches = 0;
    for (std::int64_t c = 0; c < strategy_.virtual_stages; ++c) {
      const std::int64_t n = layers(c, stage);
      time += with_shards(pass(passes(stage).layer), layer_, n, forward);
      launches += n * pass(passes(stage).layer).launches;
    }
    if (stage == 0) {
      time += with_shards(pass(passes(stage).embedding), embedding_, 1, forward);
      launches += pass(passes(stage).embedding).launches;
    }
    if (last_stage(stage)) {
      time += with_shards(pass(passes(stage).head), head_, 1, forward);
      launches += pass(passes(stage).head).launches;
    }
    const Seconds wait = framework_.pass_host_sync ? launch_ : Seconds{};
    const Seconds launching = static_cast<double>(launches) * launch_;
    return (framework_.blocking_launches ? time + launching : std::max(time, launching)) + wait;
  }

  // `n` passes in a row with what ZeRO 2 and 3 do for each micro-batch beside them.
  Seconds with_shards(const PassTime& pass, const UnitTimes& unit, std::int64_t n,
                      bool forward) const {
    const Seconds alone = pass.times(n);
    if (n == 0 || !states_.cuts_gradients) return alone;
    const Seconds gather = states_.cuts_parameters ? unit.gather : Seconds{};
    const Seconds reduce = forward ? Seconds{} : unit.reduce;
    const auto count = static_cast<double>(n);
    if (framework_.blocking_launches) return alone + count * (gather + reduce);
    const Prefetch prefetch =
        forward ? framework_.shards.forward_prefetch : framework_.shards.backward_prefetch;
    const bool twice = !forward && n > 1 && framework_.shards.gather_each.has_value() &&
                       strategy_.recompute == Recompute::kFull;
    if (states_.cuts_parameters && prefetch == Prefetch::kNone)
      return std::max(alone + (twice ? 2 : 1) * count * gather, count * (gather + reduce));
    const Seconds each = std::max(alone / count, gather + reduce);
    return gather + (count - 1) * each + alone / count;
  }

  Seconds pipeline_time() const {
    const std::int64_t p = strategy_.pipeline_parallel;
    const auto m = static_cast<double>(strategy_.micro_batches());
    const auto t = [&](std::int64_t s) { return forward_[index(s)] + backward_[index(s)]; };
    Seconds sum;
    Seconds slowest;
    for (std::int64_t s = 0; s < p; ++s) {
      sum += t(s);
      slowest = std::max(slowest, t(s));
    }
    const Seconds ramp =
        (sum - slowest) / chunks() + 2.0 * static_cast<double>(p - 1) * transfer_ + late_start();
    Seconds cycle = slowest;
    if (p > 1 && blocking()) {
      cycle += 2 * chunks() * transfer_;
    } else if (p > 1 && strategy_.schedule == "1f1b" && strategy_.micro_batches() > p) {
      Seconds round;
      for (std::int64_t s = p - 1; s >= 0; --s) {
        round += t(s);
        cycle = std::max(cycle, round / static_cast<double>(p - s));
        round += 2.0 * transfer_;
      }
    }
    return ramp + slowest + (m - 1) * cycle;
  }

  // What the first forward passes wait for parameters that are gathered beside them.
  Seconds late_start() const {
    if (states_.gather != Gather::kStartOfStep) return {};
    Seconds plain;
    Seconds real;
    const std::int64_t p = strategy_.pipeline_parallel;
    for (std::int64_t s = 0; s < p; ++s) {
      Seconds gathered = static_cast<double>(layers(0, s)) * layer_.gather;
      if (s == 0) gathered += embedding_.gather;
      if (last_stage(s) && strategy_.virtual_stages == 1) gathered += head_.gather;
      const Seconds pass = forward_[index(s)] / chunks();
      const Seconds last = last_stage(s) && strategy_.virtual_stages == 1
                               ? passes(s).head.forward.first
                               : passes(s).layer.forward.first;
      plain += pass + transfer_;
      real = std::max(real + pass, gathered + last) + transfer_;
    }
    return std::max(real - plain, Seconds{});
  }

  // What a stage's gradients take after its last backward pass.
  Seconds exposed_reduction(std::int64_t stage) const {
    if (states_.reduce == Reduce::kNever) return {};
    const Seconds first = stage == 0 ? embedding_.reduce : Seconds{};
    if (states_.reduce == Reduce::kEveryMicroBatch) return first;
    if (states_.reduce == Reduce::kEndOfStep) return all_reduced_;
    // The end of the data stream's queue: head, layers, embedding, each ready when its backward
    // pass ends; counted from the end of the stage's last backward pass.
    const std::int64_t n = layers(0, stage);
    const auto many = static_cast<double>(n);
    const bool has_head = last_stage(stage) && strategy_.virtual_stages == 1;
    const Seconds tail = stage == 0 ? passes(stage).embedding.backward.first : Seconds{};
    Seconds exposed = first;
    if (n > 0) exposed = std::max(exposed, layer_.reduce + first - tail);
    const Seconds queue = many * layer_.reduce + first;
    if (n > 0)
      exposed = std::max(exposed, queue - tail - (many - 1) * passes(stage).layer.backward.next);
    if (has_head)
      exposed =
          std::max(exposed, head_.reduce + queue - tail - passes(stage).layer.backward.times(n));
    return exposed;
  }

  // Gradients of copies, norm, optimizer, and parameters that are gathered at the end.
  Result<Seconds> finish_time() {
    Seconds time;
    const auto copies = replicated_gradients();
    if (!copies) return copies;
    time += *copies;
    const std::int64_t p = strategy_.pipeline_parallel;
    if (model_.tied_embeddings && p > 1) {
      const auto tied = times_.ends(
          program::CollectiveKind::kAllReduce,
          size_of(gradient_dtype()) * static_cast<double>(blocks_.head.largest_parameter),
          line_of(blocks_.mesh, pipeline_));
      if (!tied) return tied;
      time += *tied;
    }
    Seconds optimizer;
    for (std::int64_t s = 0; s < p; ++s)
      optimizer = std::max(optimizer, optimizer_time(s, &Spread::slowest));
    time += optimizer;
    if (framework_.gradient_clipping) {
      time += launch_;
      for (Axis axis = 0; axis < static_cast<Axis>(blocks_.mesh.size()); ++axis) {
        if (axis == data_ && !states_.cuts_optimizer) continue;
        const auto norm =
            times_.slower_end(program::CollectiveKind::kAllReduce, size_of(DType::kFp32),
                              line_of(blocks_.mesh, axis), strategy_.devices());
        if (!norm) return norm;
        norm_ = std::max(norm_, *norm);
      }
      time += norm_;
    }
    if (states_.gather == Gather::kEndOfStep) time += all_gathered_;
    return time;
  }

  Result<Seconds> replicated_gradients() {
    std::map<std::vector<Axis>, std::int64_t> partial;
    for (const auto& group : blocks_.layer.parameters) {
      if (!group.also_partial.empty())
        partial[group.also_partial] += group.elements * layers(0, 0) * strategy_.virtual_stages;
    }
    Seconds time;
    for (const auto& [axes, count] : partial) {
      Attribute from = replicated(1);
      from.partial = sums_over(axes);
      const auto one = conversion(count, gradient_dtype(), from, replicated(1));
      if (!one) return one;
      time += *one;
    }
    return time;
  }

  // Its kernels.
  Seconds optimizer_time(std::int64_t stage, Seconds Spread::*which) {
    std::int64_t count = lower::elements_of_stage(strategy_, model_, blocks_, stage);
    if (states_.cuts_optimizer)
      count = (count + strategy_.data_parallel - 1) / strategy_.data_parallel;
    Seconds time;
    for (const Pass& pass :
         lower::optimizer_kernels(framework_.optimizer, count, strategy_.precision))
      time += times_.kernel(pass, kinds_[index(stage)]).*which;
    if (framework_.gradient_clipping)
      time +=
          times_.kernel(Pass{.kind = PassKind::kGradientNorm, .rows = count, .dtype = DType::kFp32},
                        kinds_[index(stage)]).*
          which;
    return time;
  }

  // See the file's comment. The pieces before stage s are those of chunk 0.
  Seconds bound() {
    const auto m = static_cast<double>(strategy_.micro_batches());
    const auto both = [](const PassTimes& of, Seconds PassTime::*which) {
      return of.forward.*which + of.backward.*which;
    };
    Seconds before;
    Seconds most;
    for (std::int64_t s = 0; s < strategy_.pipeline_parallel; ++s) {
      const auto of_chunks = [&](std::int64_t chunks, Seconds PassTime::*which) {
        Seconds time = s == 0 ? both(passes(s).embedding, which) : Seconds{};
        for (std::int64_t c = 0; c < chunks; ++c)
          time += static_cast<double>(layers(c, s)) * both(passes(s).layer, which);
        return time;
      };
      Seconds own = of_chunks(strategy_.virtual_stages, &PassTime::least_on_slowest);
      if (last_stage(s)) own += both(passes(s).head, &PassTime::least_on_slowest);
      most = std::max(most, before + m * own);
      before += of_chunks(1, &PassTime::least);
    }
    return most + optimizer_time(0, &Spread::fastest);
  }

  const Strategy& strategy_;
  const Framework& framework_;
  StateSharding states_;
  const Model& model_;
  const lower::LoweredModel& blocks_;
  const std::vector<const ModelTimes*>& passes_;  // per stage
  const std::vector<Kinds>& kinds_;               // per stage
  Times& times_;
  Seconds launch_;
  std::vector<std::int64_t> split_;
  Axis data_;
  Axis pipeline_;
  std::vector<Seconds> forward_;  // per stage: a micro-batch, all chunks
  std::vector<Seconds> backward_;
  Seconds transfer_;
  UnitTimes embedding_;
  UnitTimes layer_;
  UnitTimes head_;
  Seconds all_reduced_;  // the stage with most, in one operation
  Seconds all_gathered_;
  Seconds norm_;
};

}  // namespace

Estimator::Estimator(const Model& model, const ClusterView& cluster,
                     std::vector<std::int32_t> devices, const CostModel& cost, Seconds launch_time)
    : model_(model),
      launch_time_(launch_time),
      places_(cluster, std::move(devices)),
      times_(cost, places_) {}
Estimator::~Estimator() = default;

// Local shapes do not depend on the number of replicas and stages (the batch of the graph grows
// with the former), so blocks are lowered once and their mesh is set to that of each strategy.
Result<Estimator::Split*> Estimator::split_of(const Strategy& strategy) {
  std::int64_t stride = 1;  // of the tensor axis: its groups decide the times
  std::vector<MeshAxis> mesh;
  for (const std::string& name : strategy.rank_order) {
    const std::int64_t size = name == "tensor" ? strategy.tensor_parallel
                              : name == "data" ? strategy.data_parallel
                                               : strategy.pipeline_parallel;
    if (name == "tensor") {
      for (const MeshAxis& axis : mesh) stride *= axis.size;
    }
    mesh.push_back({name, size});
  }
  const SplitKey key{strategy.tensor_parallel, strategy.sequence_parallel, strategy.micro_batch,
                     strategy.recompute, stride};
  auto it = splits_.find(key);
  if (it == splits_.end()) {
    Strategy alone = strategy;
    alone.data_parallel = 1;
    alone.pipeline_parallel = 1;
    auto blocks = lower::lower_blocks(model_, alone);
    if (!blocks) return blocks.error();
    it = splits_.emplace(key, Split{*std::move(blocks), {}}).first;
  }
  Split& split = it->second;
  split.blocks.mesh = std::move(mesh);
  // The batch is split over the replicas: its extent is that of all of them together.
  split.blocks.boundary_shape.front() = strategy.micro_batch * strategy.data_parallel;
  return &split;
}

Result<const std::vector<Estimator::InFlight>*> Estimator::in_flight(const Strategy& strategy) {
  const ScheduleKey key{strategy.schedule, strategy.pipeline_parallel, strategy.virtual_stages,
                        strategy.micro_batches()};
  if (const auto it = in_flight_.find(key); it != in_flight_.end()) return &it->second;
  const auto kept = kept_passes(strategy);
  if (!kept) return kept.error();
  std::vector<InFlight> list;
  for (const auto& one : *kept) list.push_back({one});
  return &in_flight_.emplace(key, std::move(list)).first->second;
}

Result<Estimate> Estimator::memory(const Strategy& strategy) {
  const auto split = split_of(strategy);
  if (!split) return split.error();
  const auto kept = in_flight(strategy);
  if (!kept) return kept.error();
  const auto& kinds = places_.of_stages((*split)->blocks.mesh);
  Estimate estimate;
  for (std::int64_t s = 0; s < strategy.pipeline_parallel; ++s) {
    const auto stage = static_cast<std::size_t>(s);
    const Bytes peak = peak_of_stage(strategy, model_, (*split)->blocks, s, (**kept)[stage].chunks);
    Bytes memory = places_.kinds()[static_cast<std::size_t>(kinds[stage].front())].memory;
    for (const std::int32_t kind : kinds[stage])
      memory = std::min(memory, places_.kinds()[static_cast<std::size_t>(kind)].memory);
    memory -= reserve_of(strategy);
    if (s == 0 || memory - peak < estimate.memory - estimate.peak) {
      estimate.peak = peak;
      estimate.memory = memory;
      estimate.stage = s;
    }
  }
  return estimate;
}

Result<Estimate> Estimator::estimate(const Strategy& strategy) {
  auto estimate = memory(strategy);
  if (!estimate) return estimate;
  Estimate result = *estimate;
  const auto split = split_of(strategy);
  if (!split) return split.error();
  const lower::LoweredModel& blocks = (*split)->blocks;
  const auto& kinds = places_.of_stages(blocks.mesh);
  std::vector<const ModelTimes*> passes;
  for (const Kinds& of_stage : kinds) {
    auto known = (*split)->times.find({strategy.devices(), of_stage});
    if (known == (*split)->times.end()) {
      const auto times = model_times(blocks, of_stage, times_);
      if (!times) return times.error();
      known = (*split)->times.emplace(std::pair(strategy.devices(), of_stage), *times).first;
    }
    passes.push_back(&known->second);
  }
  Step step(strategy, model_, blocks, passes, kinds, times_,
            launch_time_ + strategy.framework->host_time);
  if (auto fault = step.run(result)) return *std::move(fault);
  return result;
}

}  // namespace foreshard::search
