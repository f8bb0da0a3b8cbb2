#include "strategies/execute/step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <set>

#include "base/check.h"

#include "strategies/execute/internal/stage.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/program/lower/block.h"

namespace foreshard::execute {
namespace {

constexpr std::size_t kMostFaults = 20;
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

Axis axis_named(const std::vector<MeshAxis>& mesh, const std::string& name) {
  const auto it = std::ranges::find(mesh, name, &MeshAxis::name);
  FORESHARD_CHECK(it != mesh.end());
  return static_cast<Axis>(it - mesh.begin());
}

class WholeStep {
 public:
  WholeStep(const Model& model, const Strategy& strategy, const StepOptions& options)
      : training_{.model = model, .strategy = strategy, .options = options} {}

  Result<StepResult> run() {
    if (auto error = prepare()) return *error;
    if (auto error = passes()) return *error;
    for (Stage& stage : stages_) stage.finish_gradients();
    reduce_tied();
    std::vector<Held> gradients;
    for (Stage& stage : stages_) {
      for (Held& held : stage.parameters().held(&Bucket::gradients, ".gradient", false))
        gradients.push_back(std::move(held));
    }
    StepResult result;
    result.gradient_norm = gradient_norm();
    double factor = 1;
    if (strategy().framework->gradient_clipping)
      factor = std::min(1.0, training_.options.clip / (result.gradient_norm + 1e-6));
    for (Stage& stage : stages_) {
      StageParameters& parameters = stage.parameters();
      parameters.update(factor);
      const StateSharding& sharding = parameters.sharding();
      const bool early = sharding.gather == StateSharding::Gather::kStartOfStep;
      if (!early) parameters.gather_all();
      const bool whole = !sharding.cuts_parameters && !early;
      add(result, parameters.held(&Bucket::parameters, "", whole));
      add(result, parameters.held(&Bucket::first_moment, ".first_moment", false));
      add(result, parameters.held(&Bucket::second_moment, ".second_moment", false));
      add(result, std::move(stage.losses()));
    }
    add(result, std::move(gradients));
    result.loss = mean_loss(result);
    return result;
  }

 private:
  const Strategy& strategy() const { return training_.strategy; }

  static void add(StepResult& result, std::vector<Held> held) {
    for (Held& one : held) result.held.push_back(std::move(one));
  }

  std::optional<Error> prepare() {
    Training& t = training_;
    t.mesh = mesh_of(strategy());
    t.axes = {.tensor = axis_named(t.mesh, "tensor"),
              .data = axis_named(t.mesh, "data"),
              .pipeline = axis_named(t.mesh, "pipeline")};
    t.layers_of_piece = layers_of_stages(strategy(), t.model);
    TransformerGraphs graphs = lower::graphs_of(t.model, strategy());
    const auto block = [&](Graph graph, Recompute recompute,
                           std::unique_ptr<ShardedBlock>& into) -> std::optional<Error> {
      for (Operator& op : graph.operators)
        if (op.settings.has("rate") && op.settings.number("rate") > 0)
          op.settings.set("rate", t.options.dropout);
      auto made = sharded_block(std::move(graph), strategy(), t.mesh, t.axes, recompute);
      if (!made) return made.error();
      into = *std::move(made);
      return std::nullopt;
    };
    if (auto e = block(std::move(graphs.embedding), Recompute::kNone, t.embedding)) return e;
    if (auto e = block(std::move(graphs.layer), strategy().recompute, t.layer)) return e;
    if (auto e = block(std::move(graphs.head), Recompute::kNone, t.head)) return e;
    for (std::int64_t stage = 0; stage < strategy().pipeline_parallel; ++stage) {
      const auto slots =
          schedule::order(strategy().schedule,
                          {.stage = static_cast<std::int32_t>(stage),
                           .stages = static_cast<std::int32_t>(strategy().pipeline_parallel),
                           .chunks = static_cast<std::int32_t>(strategy().virtual_stages),
                           .micro_batches = static_cast<std::int32_t>(strategy().micro_batches())});
      if (!slots) return slots.error();
      stages_.emplace_back(training_, stage, *slots);
    }
    return std::nullopt;
  }

  // Forward and backward passes of all stages, each as far as what has arrived lets it.
  std::optional<Error> passes() {
    Mail mail;
    for (bool moved = true; moved;) {
      moved = false;
      for (Stage& stage : stages_) {
        const auto any = stage.advance(mail);
        if (!any) return any.error();
        moved = moved || *any;
      }
    }
    if (!std::ranges::all_of(stages_, &Stage::done))
      return Error{Error::Code::kInvalidInput,
                   "schedule '" + strategy().schedule + "': stages wait for each other for ever"};
    FORESHARD_CHECK(mail.empty());
    return std::nullopt;
  }

  Bucket* tied_bucket(Stage& stage) const {
    auto& buckets = stage.parameters().buckets();
    const auto it = std::ranges::find(buckets, true, &Bucket::tied);
    return it == buckets.end() ? nullptr : &*it;
  }

  // First and last stage hold a copy each of a tied embedding and add up their gradients.
  void reduce_tied() {
    if (!training_.model.tied_embeddings || stages_.size() == 1) return;
    Bucket& first = *tied_bucket(stages_.front());
    Bucket& last = *tied_bucket(stages_.back());
    ProcessMesh mesh = mesh_from(training_.mesh);
    const std::int64_t pipeline = strategy().pipeline_parallel;
    std::vector<std::int32_t> ranks;
    Shards<double> shards;
    // The stages' meshes have the order of the whole mesh.
    std::array<std::size_t, 2> next{};
    std::vector<std::pair<std::size_t, std::size_t>> origin;
    for (std::int64_t p = 0; p < mesh.size(); ++p) {
      const std::int64_t stage = coordinate_of(mesh, p, training_.axes.pipeline);
      if (stage != 0 && stage != pipeline - 1) continue;
      const std::size_t which = stage == 0 ? 0 : 1;
      ranks.push_back(mesh.ranks[static_cast<std::size_t>(p)]);
      origin.emplace_back(which, next[which]);
      shards.of_position.push_back((which == 0 ? first : last).gradients[next[which]++]);
    }
    mesh.axes[static_cast<std::size_t>(training_.axes.pipeline)].size = 2;
    mesh.ranks = std::move(ranks);
    const Shape shape{strategy().tensor_parallel, strategy().data_parallel, first.padded};
    const Attribute to{.dims = {{training_.axes.tensor}, {training_.axes.data}, {}}};
    Attribute from = to;
    from.partial = sums_over({training_.axes.pipeline});
    auto sums = convert(shards, shape, from, to, mesh);
    for (std::size_t i = 0; i < origin.size(); ++i) {
      const auto& [which, position] = origin[i];
      (which == 0 ? first : last).gradients[position] = std::move(sums.of_position[i]);
    }
  }

  // Over the ranks that hold different gradients, as lowering reduces it.
  double gradient_norm() {
    const ProcessMesh mesh = mesh_from(training_.mesh);
    const bool sharded = stages_.front().parameters().sharding().cuts_optimizer;
    std::vector<std::size_t> next(stages_.size());
    Shards<double> shards;
    for (std::int64_t p = 0; p < mesh.size(); ++p) {
      const auto stage = static_cast<std::size_t>(coordinate_of(mesh, p, training_.axes.pipeline));
      const auto position = static_cast<std::int64_t>(next[stage]++);
      // The first stage answers for a tied table.
      shards.of_position.push_back(
          {stages_[stage].parameters().squared_norm(position, stage == 0)});
    }
    const Shape shape{sharded ? 1 : strategy().data_parallel};
    Attribute to{.dims = {{}}};
    if (!sharded) to.dims[0] = {training_.axes.data};
    Attribute from = to;
    std::vector<Axis> axes{training_.axes.tensor, training_.axes.pipeline};
    if (sharded) axes.push_back(training_.axes.data);
    std::ranges::sort(axes);
    from.partial = sums_over(axes);
    return std::sqrt(convert(shards, shape, from, to, mesh).of_position.front().front());
  }

  double mean_loss(const StepResult& result) const {
    std::map<std::pair<std::string, std::int64_t>, double> tokens;
    for (const Held& held : result.held) {
      if (!held.tensor.starts_with("loss.")) continue;
      for (std::size_t i = 0; i < held.indices.size(); ++i)
        tokens[{held.tensor, held.indices[i]}] = held.values[i];
    }
    double sum = 0;
    for (const auto& [token, loss] : tokens) sum += loss;
    return sum / static_cast<double>(tokens.size());
  }

  Training training_;
  std::vector<Stage> stages_;
};

}  // namespace

Result<StepResult> execute_step(const Model& model, const Strategy& strategy,
                                const StepOptions& options) {
  return WholeStep(model, strategy, options).run();
}

Strategy serial_of(const Strategy& strategy) {
  Strategy serial = strategy;
  serial.tensor_parallel = 1;
  serial.pipeline_parallel = 1;
  serial.data_parallel = 1;
  serial.sequence_parallel = false;
  serial.schedule = "1f1b";
  serial.virtual_stages = 1;
  serial.layers_per_stage.clear();
  serial.micro_batch = strategy.micro_batch * strategy.data_parallel;
  serial.recompute = Recompute::kNone;
  serial.framework.value.vocabulary_multiple *= strategy.tensor_parallel;
  return serial;
}

namespace {

// Of the largest value of all tensors of a kind: what rounding leaves of sums that cancel (of the
// gradient of a shift of all keys, say, which softmax does not see).
constexpr double kRounding = 1e-15;

// ".gradient", ".first_moment", ...; nothing of parameters and losses.
std::string suffix_of(const std::string& tensor) {
  for (const char* suffix : {".gradient", ".first_moment", ".second_moment"})
    if (tensor.ends_with(suffix)) return suffix;
  return "";
}

}  // namespace

Comparison compare(const StepResult& serial, const StepResult& sharded, double tolerance) {
  struct Reference {
    std::map<std::int64_t, double> values;
    std::set<std::int64_t> seen;
    double largest = 0;
    std::int64_t faults = 0;
    double worst = 0;
    std::string text;  // of the worst fault
  };
  Comparison result;
  std::map<std::string, Reference> references;
  std::map<std::string, double> largest;  // of the tensors with the same suffix
  for (const Held& held : serial.held) {
    Reference& reference = references[held.tensor];
    double& most = largest[suffix_of(held.tensor)];
    for (std::size_t i = 0; i < held.indices.size(); ++i) {
      reference.values[held.indices[i]] = held.values[i];
      reference.largest = std::max(reference.largest, std::abs(held.values[i]));
      most = std::max(most, std::abs(held.values[i]));
    }
  }
  for (const Held& held : sharded.held) {
    Reference& reference = references[held.tensor];
    const double scale = reference.largest > 0 ? reference.largest : 1;
    const double nothing = kRounding * largest[suffix_of(held.tensor)];
    for (std::size_t i = 0; i < held.indices.size(); ++i) {
      const std::int64_t index = held.indices[i];
      reference.seen.insert(index);
      ++result.elements;
      const auto expected = reference.values.find(index);
      const double value = expected == reference.values.end() ? kNoNumber : expected->second;
      const double gap = std::abs(held.values[i] - value);
      const double difference = gap <= nothing ? 0 : gap / scale;
      if (difference <= tolerance) {
        result.worst = std::max(result.worst, difference);
        continue;
      }
      const bool worse = reference.faults++ == 0 || difference > reference.worst ||
                         (std::isnan(difference) && !std::isnan(reference.worst));
      if (!worse) continue;
      reference.worst = difference;
      reference.text = fmt::format(
          "on rank {}, element {}: {} where the serial run has {} (relative difference {:.3g})",
          held.rank, index, held.values[i], value, difference);
    }
  }
  for (const auto& [tensor, reference] : references) {
    ++result.tensors;
    if (reference.faults > 0) {
      result.worst = std::isnan(reference.worst) ? std::numeric_limits<double>::infinity()
                                                 : std::max(result.worst, reference.worst);
      result.faults.push_back(
          fmt::format("{} {}; {} such values", tensor, reference.text, reference.faults));
    }
    if (reference.seen.size() < reference.values.size())
      result.faults.push_back(fmt::format("{}: {} of {} elements are on no rank", tensor,
                                          reference.values.size() - reference.seen.size(),
                                          reference.values.size()));
  }
  // What went wrong first shows best in the losses, then in the gradients.
  std::ranges::stable_sort(result.faults, {}, [](const std::string& fault) {
    if (fault.starts_with("loss.")) return 0;
    return fault.find(".gradient") != std::string::npos ? 1 : 2;
  });
  if (result.faults.size() > kMostFaults) result.faults.resize(kMostFaults);
  return result;
}

}  // namespace foreshard::execute
