#include "sim/search/estimate.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/check.h"

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/reserve.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/optimizer_block.h"
#include "strategies/program/lower/quantized_weights.h"
#include "strategies/program/lower/resident.h"

namespace foreshard::search {

struct Estimator::Split {
  lower::LoweredModel blocks;  // its mesh is that of the strategy being estimated
  std::map<std::pair<std::int64_t, Kinds>, ModelTimes> times;  // by ranks of the mesh, by kinds
};
Estimator::SplitKey::SplitKey(const Strategy& strategy)
    : tensor_parallel(strategy.tensor_parallel),
      context_parallel(strategy.context_parallel),
      context_exchange(strategy.context_exchange),
      context_heads(strategy.context_heads),
      expert_parallel(strategy.expert_parallel),
      expert_tensor_parallel(strategy.expert_tensor_parallel),
      sequence_parallel(strategy.sequence_parallel),
      micro_batch(strategy.micro_batch),
      recompute(strategy.recompute),
      shard_replicas(strategy.shard_replicas),
      splits_backward(foreshard::splits_backward(strategy)) {
  std::int64_t stride = 1;
  for (const MeshAxis& axis : mesh_of(strategy)) {
    if (axis.name == "tensor" || axis.name.starts_with("context") || axis.name == "expert")
      strides.push_back(stride);
    stride *= axis.size;
  }
}
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
        all_(blocks.all()),
        layers_of_pieces_(variants_of_stages(model, strategy)),
        copies_(copy_axes(blocks.mesh)),
        shards_(shard_axes(blocks.mesh)),
        splits_(split_axes(blocks.mesh)),
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
  // The units of a piece, by block.
  std::vector<std::int64_t> units(std::int64_t piece) const {
    std::vector<std::int64_t> counts{piece == 0 ? 1 : 0};
    const auto& layers = layers_of_pieces_[index(piece)];
    counts.insert(counts.end(), layers.begin(), layers.end());
    counts.insert(counts.end(), 1 + blocks_.predictions.size(),
                  piece == strategy_.stages() - 1 ? 1 : 0);
    return counts;
  }
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
  Result<Seconds> reduction(std::int64_t count, const std::vector<Axis>& over) {
    Block block;
    lower::append_reduction(block, "", count, over, blocks_.mesh, strategy_, {});
    return chain_time(block, blocks_.mesh, times_);
  }
  // The sum of those groups that are reduced over `over`.
  Result<Seconds> reduction(const std::vector<plan::ParameterGroup>& groups,
                            const std::vector<Axis>& over) {
    std::int64_t count = 0;
    for (const plan::ParameterGroup& group : groups)
      if (group.over == over) count += group.elements;
    return reduction(count, over);
  }
  Result<Seconds> gathering(std::int64_t count, const std::vector<Axis>& over) {
    Attribute from = replicated(1);
    from.dims[0] = over;
    return conversion(lower::padded(count, over, blocks_.mesh), strategy_.precision, from,
                      replicated(1));
  }
  Result<Seconds> gathering(const plan::ParameterGroup& group) {
    return gathering(lower::gathered_elements(strategy_, group.elements, group.quantized),
                     group.over);
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

  // Of a shard of so many parameters, where it lies in fp32.
  Seconds cast_time(std::int64_t shard) {
    if (!states_.cuts_parameters ||
        lower::element_bytes(strategy_).parameter == size_of(strategy_.precision))
      return {};
    const Pass cast{.kind = PassKind::kCast, .rows = shard, .dtype = strategy_.precision};
    Seconds slowest;
    for (const Kinds& kinds : kinds_)
      slowest = std::max(slowest, times_.kernel(cast, kinds).slowest);
    return slowest;
  }

  // A unit's parameters, each by itself.
  Result<Seconds> gathering_each(const lower::LoweredBlock& block, const std::vector<Axis>& over) {
    Seconds sum;
    for (const std::int64_t count : block.parameter_sizes) {
      if (count <= *framework_.shards.gather_each) continue;
      const std::int64_t quantized = block.quantized_in(count);
      FORESHARD_ASSIGN(const auto time,
                       gathering({.over = over, .elements = count, .quantized = quantized}));
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
        return reduction(own_groups(symbol.block),
                         reduced_over(block(symbol.block).parameters).at(index(symbol.other)));
      case Kind::kGatherAll:
        return gathering(cut(groups_of_stage(symbol.role)).at(index(symbol.other)));
      case Kind::kReduceAll: {
        const auto groups = groups_of_stage(symbol.role);
        return reduction(groups, reduced_over(groups).at(index(symbol.other)));
      }
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
    return update_time(symbol.role);
  }

  const lower::LoweredBlock& block(std::int32_t of) const { return *all_[index(of)]; }
  std::vector<plan::ParameterGroup> groups_of_stage(std::int64_t stage) const {
    return lower::groups_of_stage(strategy_, model_, blocks_, stage);
  }
  // A table that a block shares with one before it on its stage counts there.
  std::vector<plan::ParameterGroup> own_groups(std::int32_t of) const {
    std::vector<plan::ParameterGroup> groups = block(of).parameters;
    if (lower::reads_copy_of_table(strategy_, model_, blocks_, block(of)))
      groups.push_back({.over = copies_, .elements = -blocks_.head.largest_parameter});
    return groups;
  }
  // As plan::Parts::cut_groups.
  std::vector<plan::ParameterGroup> cut(const std::vector<plan::ParameterGroup>& groups) const {
    std::vector<plan::ParameterGroup> found = plan::by_shards(groups, blocks_.mesh);
    std::erase_if(found, [](const plan::ParameterGroup& group) { return group.over.empty(); });
    return found;
  }

  // A pass takes no less than the host needs to launch it.
  Seconds pass_time_of(const Symbol& symbol) const {
    const ModelTimes& of_stage = passes(symbol.role);
    Seconds time;
    std::int64_t launches = 0;
    for (std::size_t i = 0; i < of_stage.size(); ++i) {
      const PassTimes& of = of_stage[i];
      const PassTime& pass = symbol.direction == Direction::kForward ? of.forward
                             : symbol.part == plan::Part::kWhole     ? of.backward
                             : symbol.part == plan::Part::kInput     ? of.input
                                                                     : of.weight;
      const std::int64_t n = symbol.units.at(i);
      time += symbol.follows && n > 0 ? pass.next : pass.times(n);
      launches += n * pass.launches;
    }
    const Seconds launching = static_cast<double>(launches) * launch_;
    return framework_.blocking_launches ? time + launching : std::max(time, launching);
  }

  // Parameters of a unit: whole for one pass, or for good.
  Result<Seconds> gathering(const Symbol& symbol) {
    const auto place = index(symbol.other);
    if (!states_.cuts_parameters) return gathering(cut(own_groups(symbol.block)).at(place));
    const lower::LoweredBlock& of = block(symbol.block);
    const plan::ParameterGroup group = cut(of.parameters).at(place);
    const bool each = framework_.shards.gather_each.has_value();
    FORESHARD_ASSIGN(auto time, each ? gathering_each(of, group.over) : gathering(group));
    // A backward pass that computes activations again gathers for each of the two.
    const bool twice =
        symbol.direction == Direction::kBackward && each && of.recompute == Recompute::kFull;
    const std::int64_t plain =
        group.elements - (strategy_.quantized_parameters ? group.quantized : 0);
    return (twice ? 2.0 : 1.0) * time + cast_time(shard_of(plain, group)) +
           weight_cast_time(
               lower::cast_at_gather(strategy_, group.quantized, shard_of(group.quantized, group)));
  }
  std::int64_t shard_of(std::int64_t count, const plan::ParameterGroup& group) const {
    return plan::shard_of(count, group, blocks_.mesh);
  }

  // The residual stream to another stage, in pieces where the framework sends it so.
  Result<Seconds> transfer_time(std::int64_t from, std::int64_t to) {
    double count = 1;
    for (const auto extent :
         local_shape(blocks_.boundary_shape, blocks_.boundary_sent, blocks_.mesh))
      count *= static_cast<double>(extent);
    FORESHARD_ASSIGN(const auto time, times_.transfer(size_of(strategy_.precision) * count,
                                                      line_of(blocks_.mesh, pipeline_), from, to));
    Block block;
    lower::append_reshard(block, "", blocks_.boundary_shape, strategy_.precision,
                          blocks_.boundary_sent, blocks_.boundary, blocks_.mesh,
                          lower::stream(lower::kTensorStream), {});
    FORESHARD_ASSIGN(const auto whole, chain_time(block, blocks_.mesh, times_));
    return time + whole;
  }

  // The gradients of the `place`-th group of copies that `stage` holds.
  Result<Seconds> copies_time(std::int64_t stage, std::int32_t place) {
    std::map<std::vector<Axis>, std::int64_t> partial;
    for (const auto& group : groups_of_stage(stage))
      if (!group.also_partial.empty()) partial[group.also_partial] += group.elements;
    FORESHARD_CHECK(place < std::ssize(partial));
    const auto& [axes, count] = *std::next(partial.begin(), place);
    Attribute from = replicated(1);
    from.partial = sums_over(axes);
    return conversion(count, gradient_dtype(), from, replicated(1));
  }

  // The norm of all gradients, which the host reads.
  Result<Seconds> norm_time() {
    Seconds longest;
    for (Axis axis = 0; axis < static_cast<Axis>(blocks_.mesh.size()); ++axis) {
      const bool is_cut = std::ranges::find(shards_, axis) != shards_.end();
      const bool is_split = std::ranges::find(splits_, axis) != splits_.end();
      if (!is_split && !(is_cut && states_.cuts_optimizer)) continue;
      const auto norm =
          times_.slower_end(program::CollectiveKind::kAllReduce, size_of(DType::kFp32),
                            Groups(blocks_.mesh, {axis}), strategy_.devices());
      if (!norm) return norm;
      longest = std::max(longest, *norm);
    }
    return longest + launch_;
  }

  // The optimizer's kernels and exchanges.
  Result<Seconds> update_time(std::int64_t stage) {
    const auto groups = plan::by_shards(groups_of_stage(stage), blocks_.mesh);
    const auto steps = lower::update_steps(strategy_, blocks_.mesh, groups);
    Seconds exchanges;
    for (const UpdateStep& step : steps) {
      const auto* exchange = std::get_if<UpdateExchange>(&step);
      if (exchange == nullptr) continue;
      Block block;
      lower::append_exchange(block, *exchange, blocks_.mesh, {});
      FORESHARD_ASSIGN(const auto once, chain_time(block, blocks_.mesh, times_));
      exchanges += static_cast<double>(exchange->times) * once;
    }
    return kernel_time(stage, groups, steps, &Spread::slowest) + exchanges;
  }

  // Its kernels alone.
  Seconds optimizer_time(std::int64_t stage, Seconds Spread::*which) {
    const auto groups = plan::by_shards(groups_of_stage(stage), blocks_.mesh);
    return kernel_time(stage, groups, lower::update_steps(strategy_, blocks_.mesh, groups), which);
  }
  Seconds kernel_time(std::int64_t stage, const std::vector<plan::ParameterGroup>& groups,
                      const std::vector<UpdateStep>& steps, Seconds Spread::*which) {
    std::int64_t count = 0;
    std::int64_t cast = 0;
    for (const auto& group : groups) {
      count += states_.cuts_optimizer ? shard_of(group.trained(), group) : group.trained();
      cast += lower::cast_at_step_end(strategy_, group, blocks_.mesh);
    }
    Seconds time;
    for (const UpdateStep& step : steps) {
      if (const auto* one = std::get_if<UpdateKernel>(&step))
        time += static_cast<double>(one->times) *
                (times_.kernel(one->kernel, kinds_[index(stage)]).*which);
    }
    if (framework_.gradient_clipping)
      time +=
          times_.kernel(Pass{.kind = PassKind::kGradientNorm, .rows = count, .dtype = DType::kFp32},
                        kinds_[index(stage)]).*
          which;
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
    Seconds before;
    Seconds most;
    for (std::int64_t s = 0; s < strategy_.pipeline_parallel; ++s) {
      const auto of_piece = [&](std::int64_t piece, auto time_of) {
        Seconds time;
        const std::vector<std::int64_t> counts = units(piece);
        for (std::size_t i = 0; i < counts.size(); ++i)
          time += static_cast<double>(counts[i]) * time_of(passes(s)[i]);
        return time;
      };
      Seconds own;
      for_each_piece(strategy_, s, [&](std::int64_t, std::int64_t piece) {
        own += of_piece(piece,
                        [&](const PassTimes& of) { return both(of, &PassTime::least_on_slowest); });
      });
      const Seconds step = splits ? optimizer_time(s, &Spread::fastest) : Seconds{};
      most = std::max(most, before + m * own + step);
      before += of_piece(s, [&](const PassTimes& of) {
        return splits ? of.forward.least : both(of, &PassTime::least);
      });
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
  std::vector<const lower::LoweredBlock*> all_;
  std::vector<std::vector<std::int64_t>> layers_of_pieces_;  // by LayerVariant
  std::vector<Axis> copies_;
  std::vector<Axis> shards_;
  std::vector<Axis> splits_;
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
    const bool shared = lower::reads_copy_of_table(strategy, model, blocks, of);
    BlockBytes& bytes = result.at(i);
    bytes.kept = of.saved;
    const auto over = reduced_over(of.parameters);
    for (const plan::ParameterGroup& group : of.parameters) {
      const auto place = std::ranges::find(over, group.over) - over.begin();
      if (states.cuts_parameters)
        bytes.whole += lower::whole_parameters(strategy, group.elements, group.quantized);
      if (states.cuts_gradients)
        bytes.gradient.at(static_cast<std::size_t>(place)) +=
            gradient * static_cast<double>(group.elements);
    }
    if (shared && states.cuts_gradients) {
      const auto place = std::ranges::find(over, copy_axes(blocks.mesh)) - over.begin();
      bytes.gradient.at(static_cast<std::size_t>(place)) -=
          gradient * static_cast<double>(blocks.head.largest_parameter);
    }
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
  const SplitKey key(strategy);
  auto it = splits_.find(key);
  if (it == splits_.end()) {
    Strategy alone = strategy;
    alone.data_parallel = alone.shard_replicas * alone.expert_ways();  // the mesh keeps its axes
    alone.pipeline_parallel = 1;
    FORESHARD_ASSIGN(auto blocks, lower::lower_blocks(model_, alone));
    it = splits_.emplace(key, Split{std::move(blocks), {}}).first;
  }
  Split& split = it->second;
  split.blocks.mesh = mesh_of(strategy);
  // The batch is split over the replicas: its extent is that of all of them together.
  split.blocks.boundary_shape.front() = strategy.micro_batch * strategy.data_parallel;
  return &split;
}

// The plans of a few micro-batches tell the rest: once a pipeline runs full, each further period
// adds the same.
Result<PlanForms*> Estimator::forms_of(const Strategy& strategy,
                                       const lower::LoweredModel& blocks) {
  const StateSharding states = state_sharding(strategy);
  const std::int64_t stages = strategy.pipeline_parallel;
  const bool is_usual = schedule::find_schedule(strategy.schedule)->may_block;
  const std::int64_t period = strategy.virtual_stages > 1 || !is_usual ? stages : 1;
  const std::int64_t fewer = (is_usual ? kFullPipeline : kFullOtherPipeline) * stages;
  const bool all =
      strategy.schedule == schedule::kCustom || strategy.micro_batches() <= fewer + period;
  FormKey key{.schedule = strategy.schedule,
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
              .mesh = {},
              .groups = {}};
  for (const MeshAxis& axis : blocks.mesh) key.mesh.emplace_back(axis.name, axis.size > 1);
  for (const lower::LoweredBlock* block : blocks.all()) {
    auto& groups = key.groups.emplace_back();
    for (const plan::ParameterGroup& group : block->parameters)
      groups.emplace_back(group.over, group.also_partial);
  }
  if (const auto it = forms_.find(key); it != forms_.end()) return &it->second;
  const Framework& framework = *strategy.framework;
  PlanForms forms{.micro_batches = fewer, .period = period};
  const auto add = [&](std::int64_t micro_batches) -> Status {
    Strategy shorter = strategy;
    shorter.global_batch = micro_batches * strategy.data_parallel * strategy.micro_batch;
    FORESHARD_ASSIGN(const auto plan, lower::plan_of(model_, shorter, blocks));
    PlanForm form{.shape = {plan, framework.blocking_launches, framework.gradient_clipping}};
    for (const plan::Role& role : plan.roles)
      form.loads.push_back(
          loads_of(plan, role, framework.blocking_launches, !blocks.predictions.empty()));
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
