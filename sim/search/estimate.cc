#include "sim/search/estimate.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/check.h"

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/reserve.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/quantized_weights.h"
#include "strategies/program/lower/resident.h"

namespace foreshard::search {

struct Estimator::Split {
  lower::LoweredModel blocks;  // its mesh is that of the strategy being estimated
  std::map<std::pair<std::int64_t, Kinds>, ModelTimes> times;  // by ranks of the mesh, by kinds
};
namespace {

using program::Block;

// A pipeline runs full after so many micro-batches for each of its stages.
constexpr std::int64_t kFullPipeline = 2;
constexpr std::int64_t kFullOtherPipeline = 4;

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
        split_(layers_of_stages(strategy, model.layers)),
        copies_(copy_axes(blocks.mesh)),
        shards_(shard_axes(blocks.mesh)),
        pipeline_(axis_of(blocks.mesh, "pipeline")) {}

  // The step, from the forms of its plan. Fails where a route is missing.
  Status run(PlanForms& forms, Estimate& estimate) {
    std::vector<Seconds> steps;
    for (PlanForm& form : forms.forms) {
      FORESHARD_ASSIGN(const auto step, walk(form.shape));
      steps.push_back(step);
    }
    estimate.step = forms.of(strategy_.micro_batches(), steps);
    estimate.bound = bound();
    return {};
  }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  bool has_head(std::int64_t stage) const { return stage == last_stage(strategy_); }
  const ModelTimes& passes(std::int64_t stage) const { return *passes_[index(stage)]; }
  DType gradient_dtype() const { return framework_.gradients_of(strategy_.precision); }

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
    from.partial = sums_over(copies_);
    Attribute to = replicated(1);
    if (states_.cuts_optimizer) to.dims[0] = shards_;
    return conversion(count, gradient_dtype(), from, to);
  }
  Result<Seconds> gathering(std::int64_t count) {
    Attribute from = replicated(1);
    from.dims[0] = shards_;
    return conversion(count, strategy_.precision, from, replicated(1));
  }

  // On the slowest kind of device.
  Seconds weight_cast_time(std::int64_t count) {
    Seconds slowest;
    for (const Kinds& kinds : kinds_) {
      Seconds time;
      for (const Pass& pass : lower::weight_casts(strategy_, count))
        time += times_.kernel(pass, kinds).slowest;
      slowest = std::max(slowest, time);
    }
    return slowest;
  }

  // Of the shard of `count` parameters, where it lies in fp32.
  Seconds cast_time(std::int64_t count) {
    if (!states_.cuts_parameters ||
        lower::element_bytes(strategy_).parameter == size_of(strategy_.precision))
      return {};
    const Pass cast{.kind = PassKind::kCast, .rows = shard_of(count), .dtype = strategy_.precision};
    Seconds slowest;
    for (const Kinds& kinds : kinds_)
      slowest = std::max(slowest, times_.kernel(cast, kinds).slowest);
    return slowest;
  }

  // A layer's parameters, together or each by itself.
  Result<Seconds> gathering(const lower::LoweredBlock& block) {
    if (!states_.cuts_parameters || !framework_.shards.gather_each)
      return gathering(lower::gathered_elements(strategy_, block.elements(), block.quantized()));
    Seconds sum;
    for (const std::int64_t count : block.parameter_sizes) {
      if (count <= *framework_.shards.gather_each) continue;
      FORESHARD_ASSIGN(const auto time, gathering(lower::gathered_elements(
                                            strategy_, count, block.quantized_in(count))));
      sum += time + launch_;
    }
    return sum;
  }

  Result<Seconds> walk(PlanShape& shape) {
    std::vector<double> durations;
    for (const Symbol& symbol : shape.symbols()) {
      FORESHARD_ASSIGN(const auto time, time_of(symbol));
      durations.push_back(time.in_base());
    }
    return shape.walk(durations);
  }

  Result<Seconds> time_of(const Symbol& symbol) {
    using Kind = Symbol::Kind;
    switch (symbol.kind) {
      case Kind::kPass:
        return pass_time_of(symbol);
      case Kind::kGather:
        return gathering(symbol);
      case Kind::kReduce:
        return reduction(own_elements(symbol.block));
      case Kind::kGatherAll:
        return gathering(
            lower::gathered_elements(strategy_, elements(symbol.role), quantized(symbol.role)));
      case Kind::kReduceAll:
        return reduction(elements(symbol.role));
      case Kind::kCopies:
        return copies_time(symbol.role, symbol.other);
      case Kind::kTie:
        return times_.ends(
            program::CollectiveKind::kAllReduce,
            size_of(gradient_dtype()) * static_cast<double>(blocks_.head.largest_parameter),
            line_of(blocks_.mesh, pipeline_));
      case Kind::kTransfer:
        return transfer_time(symbol.role, symbol.other);
      case Kind::kSync:
        return launch_;
      case Kind::kNorm:
        return norm_time();
      case Kind::kOptimizer:
        break;
    }
    return optimizer_time(symbol.role, &Spread::slowest);
  }

  const lower::LoweredBlock& block(std::int32_t index) const {
    return *blocks_.all()[static_cast<std::size_t>(index)];
  }
  std::int64_t sum_of_stage(std::int64_t stage, std::int64_t plan::ParameterGroup::*what) const {
    std::int64_t sum = 0;
    for (const auto& group : lower::parameters_of_stage(strategy_, model_, blocks_, stage))
      sum += group.*what;
    return sum;
  }
  std::int64_t elements(std::int64_t stage) const {
    return sum_of_stage(stage, &plan::ParameterGroup::elements);
  }
  std::int64_t quantized(std::int64_t stage) const {
    return sum_of_stage(stage, &plan::ParameterGroup::quantized);
  }
  std::int64_t shard_of(std::int64_t count) const {
    const std::int64_t shards = strategy_.shards();
    return (count + shards - 1) / shards;
  }
  // A table that the head shares with the embedding of its stage counts there.
  std::int64_t own_elements(std::int32_t index) const {
    const bool shared = index == 2 && model_.tied_embeddings && last_stage(strategy_) == 0;
    return block(index).elements() - (shared ? blocks_.head.largest_parameter : 0);
  }

  // A pass takes no less than the host needs to launch it.
  Seconds pass_time_of(const Symbol& symbol) const {
    const ModelTimes& of_stage = passes(symbol.role);
    const std::array parts{&of_stage.embedding, &of_stage.layer, &of_stage.head};
    Seconds time;
    std::int64_t launches = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const PassTime& pass = symbol.direction == Direction::kForward ? parts[i]->forward
                             : symbol.part == plan::Part::kWhole     ? parts[i]->backward
                             : symbol.part == plan::Part::kInput     ? parts[i]->input
                                                                     : parts[i]->weight;
      const std::int64_t n = symbol.units.at(i);
      time += symbol.follows && n > 0 ? pass.next : pass.times(n);
      launches += n * pass.launches;
    }
    const Seconds launching = static_cast<double>(launches) * launch_;
    return framework_.blocking_launches ? time + launching : std::max(time, launching);
  }

  // The parameters of a unit: whole for one pass, or for good.
  Result<Seconds> gathering(const Symbol& symbol) {
    if (!states_.cuts_parameters)
      return gathering(lower::gathered_elements(strategy_, own_elements(symbol.block),
                                                block(symbol.block).quantized()));
    FORESHARD_ASSIGN(auto time, gathering(block(symbol.block)));
    // A backward pass that computes activations again gathers for each of the two.
    const bool twice = symbol.direction == Direction::kBackward && symbol.block == 1 &&
                       framework_.shards.gather_each && strategy_.recompute == Recompute::kFull;
    const lower::LoweredBlock& of = block(symbol.block);
    const std::int64_t plain =
        of.elements() - (strategy_.quantized_parameters ? of.quantized() : 0);
    return (twice ? 2.0 : 1.0) * time + cast_time(plain) +
           weight_cast_time(
               lower::cast_at_gather(strategy_, of.quantized(), shard_of(of.quantized())));
  }

  // The residual stream to another stage, in pieces where the framework sends it so.
  Result<Seconds> transfer_time(std::int64_t from, std::int64_t to) {
    const Axis tensor = axis_of(blocks_.mesh, "tensor");
    Attribute sent = blocks_.boundary;
    const std::int64_t ways = strategy_.tensor_parallel;
    if (framework_.pipeline_scatter_gather && ways > 1 &&
        state_of(sent, tensor).kind == AxisState::Kind::kReplicated &&
        blocks_.boundary_shape[1] % ways == 0)
      sent.dims[1].push_back(tensor);
    double count = 1;
    for (const auto extent : local_shape(blocks_.boundary_shape, sent, blocks_.mesh))
      count *= static_cast<double>(extent);
    FORESHARD_ASSIGN(const auto time, times_.transfer(size_of(strategy_.precision) * count,
                                                      line_of(blocks_.mesh, pipeline_), from, to));
    Block block;
    lower::append_reshard(block, "", blocks_.boundary_shape, strategy_.precision, sent,
                          blocks_.boundary, blocks_.mesh, lower::stream(lower::kTensorStream), {});
    FORESHARD_ASSIGN(const auto whole, chain_time(block, blocks_.mesh, times_));
    return time + whole;
  }

  // The gradients of the `index`-th group of copies that `stage` holds.
  Result<Seconds> copies_time(std::int64_t stage, std::int32_t index) {
    std::map<std::vector<Axis>, std::int64_t> partial;
    const auto add = [&](const lower::LoweredBlock& of, std::int64_t count) {
      for (const auto& group : of.parameters)
        if (count > 0 && !group.also_partial.empty())
          partial[group.also_partial] += group.elements * count;
    };
    std::int64_t own = 0;
    for_each_piece(strategy_, stage,
                   [&](std::int64_t, std::int64_t piece) { own += split_[Step::index(piece)]; });
    add(blocks_.layers.front(), own);
    add(blocks_.embedding, stage == 0 ? 1 : 0);
    add(blocks_.head, has_head(stage) ? 1 : 0);
    FORESHARD_CHECK(index < std::ssize(partial));
    const auto& [axes, count] = *std::next(partial.begin(), index);
    Attribute from = replicated(1);
    from.partial = sums_over(axes);
    return conversion(count, gradient_dtype(), from, replicated(1));
  }

  // The norm of all gradients, which the host reads.
  Result<Seconds> norm_time() {
    Seconds longest;
    for (Axis axis = 0; axis < static_cast<Axis>(blocks_.mesh.size()); ++axis) {
      const bool is_cut = std::ranges::find(shards_, axis) != shards_.end();
      const bool is_copy = std::ranges::find(copies_, axis) != copies_.end();
      if (is_copy && !(is_cut && states_.cuts_optimizer)) continue;
      const auto norm =
          times_.slower_end(program::CollectiveKind::kAllReduce, size_of(DType::kFp32),
                            line_of(blocks_.mesh, axis), strategy_.devices());
      if (!norm) return norm;
      longest = std::max(longest, *norm);
    }
    return longest + launch_;
  }

  // Its kernels.
  Seconds optimizer_time(std::int64_t stage, Seconds Spread::*which) {
    std::int64_t count = elements(stage);
    if (states_.cuts_optimizer) count = shard_of(count);
    Seconds time;
    for (const Pass& pass :
         lower::optimizer_kernels(framework_.optimizer, count, strategy_.precision))
      time += times_.kernel(pass, kinds_[index(stage)]).*which;
    if (framework_.gradient_clipping)
      time +=
          times_.kernel(Pass{.kind = PassKind::kGradientNorm, .rows = count, .dtype = DType::kFp32},
                        kinds_[index(stage)]).*
          which;
    const std::int64_t cast =
        lower::cast_at_step_end(strategy_, quantized(stage), shard_of(quantized(stage)));
    for (const Pass& pass : lower::weight_casts(strategy_, cast))
      time += times_.kernel(pass, kinds_[index(stage)]).*which;
    return time;
  }

  // See the file's comment. The pieces before the first of stage s are those of chunk 0.
  Seconds bound() {
    const auto m = static_cast<double>(strategy_.micro_batches());
    const bool splits = splits_backward(strategy_);
    const auto both = [&](const PassTimes& of, Seconds PassTime::*which) {
      // Of a pass that may run whole or in two parts, the lesser.
      const bool apart = splits && of.input.launches > 0;
      return of.forward.*which +
             (apart ? std::min(of.input.*which + of.weight.*which, of.backward.*which)
                    : of.backward.*which);
    };
    const auto through = [&](const PassTimes& of) {
      return splits ? of.forward.least : both(of, &PassTime::least);
    };
    Seconds before;
    Seconds most;
    for (std::int64_t s = 0; s < strategy_.pipeline_parallel; ++s) {
      const ModelTimes& of = passes(s);
      Seconds own = s == 0 ? both(of.embedding, &PassTime::least_on_slowest) : Seconds{};
      for_each_piece(strategy_, s, [&](std::int64_t, std::int64_t piece) {
        own +=
            static_cast<double>(split_[index(piece)]) * both(of.layer, &PassTime::least_on_slowest);
      });
      if (has_head(s)) own += both(of.head, &PassTime::least_on_slowest);
      const Seconds step = splits ? optimizer_time(s, &Spread::fastest) : Seconds{};
      most = std::max(most, before + m * own + step);
      if (s == 0) before += through(of.embedding);
      before += static_cast<double>(split_[index(s)]) * through(of.layer);
    }
    return splits ? most : most + optimizer_time(0, &Spread::fastest);
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
  std::vector<Axis> copies_;
  std::vector<Axis> shards_;
  Axis pipeline_;
};

// Of a unit of each block.
std::array<BlockBytes, kBlocks> bytes_of(const Strategy& strategy, const Model& model,
                                         const lower::LoweredModel& blocks) {
  const StateSharding states = state_sharding(strategy);
  const Bytes gradient = size_of(strategy.framework->gradients_of(strategy.precision));
  const auto trails = [](const program::Block& pass) {
    return !pass.tasks.empty() && pass.tasks.back().stream != lower::stream(lower::kComputeStream);
  };
  std::array<BlockBytes, kBlocks> result;
  const auto parts = blocks.all();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const lower::LoweredBlock& of = *parts.at(i);
    const bool shared = &of == &blocks.head && model.tied_embeddings && last_stage(strategy) == 0;
    const std::int64_t own = of.elements() - (shared ? of.largest_parameter : 0);
    BlockBytes& bytes = result.at(i);
    bytes.kept = of.saved;
    if (states.cuts_parameters)
      bytes.whole = lower::whole_parameters(strategy, of.elements(), of.quantized());
    if (states.cuts_gradients) bytes.gradient = gradient * static_cast<double>(own);
    bytes.work = {of.transient_forward, of.transient_backward, {}, {}};
    bytes.trails = {trails(lower::only_block(of.forward)), trails(lower::only_block(of.backward)),
                    false, false};
    if (of.split) {
      bytes.held = of.split->kept_for_weight + of.split->held;
      bytes.work[2] = of.split->transient_input + of.split->held;
      bytes.work[3] = of.split->transient_weight;
      bytes.trails[2] = trails(lower::only_block(of.split->input));
      bytes.trails[3] = trails(lower::only_block(of.split->weight));
    }
  }
  return result;
}

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
  std::vector<MeshAxis> mesh = mesh_of(strategy);
  for (const MeshAxis& axis : mesh) {
    if (axis.name == "tensor") break;
    stride *= axis.size;
  }
  const SplitKey key{strategy.tensor_parallel,
                     strategy.sequence_parallel,
                     strategy.micro_batch,
                     strategy.recompute,
                     stride,
                     strategy.shard_replicas,
                     splits_backward(strategy)};
  auto it = splits_.find(key);
  if (it == splits_.end()) {
    Strategy alone = strategy;
    alone.data_parallel = alone.shard_replicas;  // the mesh keeps its axes
    alone.pipeline_parallel = 1;
    FORESHARD_ASSIGN(auto blocks, lower::lower_blocks(model_, alone));
    it = splits_.emplace(key, Split{std::move(blocks), {}}).first;
  }
  Split& split = it->second;
  split.blocks.mesh = std::move(mesh);
  // The batch is split over the replicas: its extent is that of all of them together.
  split.blocks.boundary_shape.front() = strategy.micro_batch * strategy.data_parallel;
  return &split;
}

// The plans of a few micro-batches tell the rest: once a pipeline runs full, each further period
// adds the same.
Result<PlanForms*> Estimator::forms_of(const Strategy& strategy,
                                       const lower::LoweredModel& blocks) {
  const StateSharding states = state_sharding(strategy);
  const auto has_copies = [](const lower::LoweredBlock& block) {
    return std::ranges::any_of(block.parameters,
                               [](const auto& group) { return !group.also_partial.empty(); });
  };
  const std::int64_t stages = strategy.pipeline_parallel;
  const bool is_usual = schedule::find_schedule(strategy.schedule)->may_block;
  const std::int64_t period = strategy.virtual_stages > 1 || !is_usual ? stages : 1;
  const std::int64_t fewer = (is_usual ? kFullPipeline : kFullOtherPipeline) * stages;
  const bool all =
      strategy.schedule == schedule::kCustom || strategy.micro_batches() <= fewer + period;
  const FormKey key{.schedule = strategy.schedule,
                    .schedule_actions = strategy.schedule_actions,
                    .pass_times = strategy.pass_times,
                    .stages = stages,
                    .chunks = strategy.virtual_stages,
                    .micro_batches = all ? strategy.micro_batches() : 0,
                    .layers_per_stage = strategy.layers_per_stage,
                    .mode = strategy.mode,
                    .cuts_parameters = states.cuts_parameters,
                    .cuts_gradients = states.cuts_gradients,
                    .cuts_optimizer = states.cuts_optimizer,
                    .reduces = states.reduce != StateSharding::Reduce::kNever,
                    .has_copies = {has_copies(blocks.embedding), has_copies(blocks.layers.front()),
                                   has_copies(blocks.head)}};
  if (const auto it = forms_.find(key); it != forms_.end()) return &it->second;
  const Framework& framework = *strategy.framework;
  PlanForms forms{.micro_batches = fewer, .period = period};
  const auto add = [&](std::int64_t micro_batches) -> Status {
    Strategy shorter = strategy;
    shorter.global_batch = micro_batches * strategy.data_parallel * strategy.micro_batch;
    FORESHARD_ASSIGN(const auto plan, lower::plan_of(model_, shorter, blocks));
    PlanForm form{.shape = {plan, framework.blocking_launches, framework.gradient_clipping}};
    for (const plan::Role& role : plan.roles)
      form.loads.push_back(loads_of(plan, role, framework.blocking_launches));
    forms.forms.push_back(std::move(form));
    return {};
  };
  FORESHARD_TRY(add(all ? strategy.micro_batches() : fewer));
  if (!all) FORESHARD_TRY(add(fewer + period));
  return &forms_.emplace(key, std::move(forms)).first->second;
}

Result<Estimate> Estimator::memory(const Strategy& strategy) {
  FORESHARD_ASSIGN(const auto split, split_of(strategy));
  const lower::LoweredModel& blocks = split->blocks;
  FORESHARD_ASSIGN(const auto forms, forms_of(strategy, blocks));
  const auto bytes = bytes_of(strategy, model_, blocks);
  const auto& kinds = places_.of_stages(blocks.mesh);
  Estimate estimate;
  for (std::int64_t s = 0; s < strategy.pipeline_parallel; ++s) {
    const auto stage = static_cast<std::size_t>(s);
    std::vector<Bytes> peaks;
    for (const PlanForm& form : forms->forms)
      peaks.push_back(search::peak(form.loads[stage], bytes));
    Bytes peak = forms->of(strategy.micro_batches(), peaks);
    for (const auto& one : lower::resident_memory(strategy, model_, blocks, s)) peak += one.bytes;
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
  FORESHARD_ASSIGN(Estimate result, memory(strategy));
  FORESHARD_ASSIGN(const auto split, split_of(strategy));
  const lower::LoweredModel& blocks = split->blocks;
  const auto& kinds = places_.of_stages(blocks.mesh);
  std::vector<const ModelTimes*> passes;
  for (const Kinds& of_stage : kinds) {
    auto known = split->times.find({strategy.devices(), of_stage});
    if (known == split->times.end()) {
      FORESHARD_ASSIGN(const auto times, model_times(blocks, of_stage, times_));
      known = split->times.emplace(std::pair(strategy.devices(), of_stage), times).first;
    }
    passes.push_back(&known->second);
  }
  Step step(strategy, model_, blocks, passes, kinds, times_,
            launch_time_ + strategy.framework->host_time);
  FORESHARD_ASSIGN(const auto forms, forms_of(strategy, blocks));
  FORESHARD_TRY(step.run(*forms, result));
  return result;
}

}  // namespace foreshard::search
