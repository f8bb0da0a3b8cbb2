#include "tests/oracle/internal/role_parameters.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tests/oracle/internal/optimizers.h"
#include "tests/oracle/random.h"

#include "strategies/graph/mesh_axes.h"

namespace foreshard::execute {
namespace {

using plan::Action;
using Gather = StateSharding::Gather;

// Parameters in the middle of training: nothing is zero, nothing is one, products keep their size.
double initial_value(const Parameter& parameter, double random) {
  const double centred = 2 * random - 1;
  if (parameter.shape.size() == 1)
    return (parameter.name.ends_with("norm.weight") ? 1.0 : 0.0) + 0.2 * centred;
  const auto rows = static_cast<double>(parameter.shape.front());
  return centred * std::sqrt(3 / std::min(rows, 64.0));
}

// Two at a time, as lowering books their memory: a third one is written where the oldest lies.
template <class ByUnit, class Values>
void hold(ByUnit& buffers, std::int32_t unit, std::int32_t bucket, Values values) {
  const bool belongs =
      !buffers.empty() && buffers.back().first == unit && !buffers.back().second.contains(bucket);
  if (!belongs) {
    if (buffers.size() == 2) buffers.pop_front();
    buffers.emplace_back(unit, typename ByUnit::value_type::second_type{});
  }
  buffers.back().second[bucket] = std::move(values);
}

}  // namespace

void add_to(Arrays& sum, const Arrays& values) {
  for (std::size_t p = 0; p < values.of_position.size(); ++p)
    std::ranges::transform(sum.of_position[p], values.of_position[p], sum.of_position[p].begin(),
                           std::plus());
}

RoleParameters::RoleParameters(const plan::StepPlan& plan, const plan::Role& role,
                               const StepOptions& options, ProcessMesh mesh)
    : plan_(plan), options_(options), mesh_(std::move(mesh)) {
  const auto& actions = role.actions;
  for (auto it = actions.begin(); it != actions.end(); ++it) {
    if (it->kind != plan::ActionKind::kReduce || (it->gives_back & plan::kGradient) == 0) continue;
    const auto adds = [units = units_of(it->what)](const Action& action) {
      return plan::completes_gradients(action) &&
             std::ranges::any_of(units, [&](std::int32_t u) { return action.units.contains(u); });
    };
    const auto last = std::find_if(std::reverse_iterator(it), actions.rend(), adds);
    ended_[static_cast<plan::ActionId>(actions.rend() - last) - 1].push_back(it->what);
  }
}

std::vector<std::int32_t> RoleParameters::units_of(std::int32_t bucket) const {
  std::vector<std::int32_t> units;
  for (const plan::UnitRange& run : plan_.buckets[static_cast<std::size_t>(bucket)].units)
    for (std::int32_t i = 0; i < run.count; ++i) units.push_back(run.first + i);
  return units;
}

// A tied table is gathered with each unit that reads it, and reduced with the first.
std::set<std::size_t> RoleParameters::parameters_in(std::int32_t bucket, bool reduced) const {
  const std::vector<Axis>& over = plan_.buckets[static_cast<std::size_t>(bucket)].over;
  std::set<std::size_t> parameters;
  for (const std::int32_t unit : units_of(bucket)) {
    for (const Use& use : uses_.at(unit)) {
      const Parameter& parameter = parameters_[use.parameter];
      if (parameter.frozen && (reduced || !states().cuts_parameters)) continue;
      const std::vector<Axis> own = reduced ? copies_of(parameter) : shards_of(parameter);
      if (own == over && (use.first || !reduced)) parameters.insert(use.parameter);
    }
  }
  return parameters;
}

std::vector<Axis> RoleParameters::copies_of(const Parameter& parameter) const {
  return without(copy_axes(mesh_.axes, parameter.of), parameter.whole.dims);
}
std::vector<Axis> RoleParameters::shards_of(const Parameter& parameter) const {
  return without(shard_axes(mesh_.axes, parameter.of), parameter.whole.dims);
}
bool RoleParameters::is_cut(const Parameter& parameter) const {
  const bool cuts = parameter.frozen ? states().cuts_parameters : states().cuts_optimizer;
  return cuts && ways(shards_of(parameter), mesh_.axes) > 1;
}

// --- the state before the step ------------------------------------------------------------------

void RoleParameters::add(std::int32_t unit, const Graph& graph,
                         const std::map<TensorId, std::vector<Axis>>& also_partial) {
  const auto& tie = plan_.parts.tie;
  const bool is_layer = unit > 0 && std::cmp_less(unit + 1, plan_.parts.units.size());
  const std::string prefix = is_layer ? "layers." + std::to_string(unit - 1) + "." : "";
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (tensor.role != TensorRole::kParameter) continue;
    const TensorId id{static_cast<std::int64_t>(i)};
    const bool is_projection = tie && tie->others.contains(unit) && tensor.name == "logits.weight";
    const bool is_of_model =
        tensor.name == "embedding.weight" || tensor.name.starts_with("final_norm.");
    Parameter parameter{.name = (is_of_model ? "" : prefix) + tensor.name,
                        .shape = tensor.shape,
                        .whole = *tensor.pinned,
                        .also_partial = also_partial.at(id),
                        .of = kind_of(graph, id),
                        .frozen = tensor.frozen};
    if (is_projection) {
      parameter.name = "embedding.weight";
      std::ranges::reverse(parameter.shape);
      std::ranges::reverse(parameter.whole.dims);
    }
    parameter.tied = tie && parameter.name == "embedding.weight";
    const auto held = std::ranges::find(parameters_, parameter.name, &Parameter::name);
    const bool first = held == parameters_.end();
    FORESHARD_CHECK(first || (parameter.tied && held->whole == parameter.whole));
    uses_[unit].push_back(
        {id, static_cast<std::size_t>(held - parameters_.begin()), is_projection, first});
    if (!first) continue;
    fill(parameter);
    parameters_.push_back(std::move(parameter));
  }
}

// Below what cuts the first dimension already, in parts as equal as they can be.
Attribute RoleParameters::cut(Attribute whole, const Shape& shape, Parameters of) const {
  const std::int64_t blocks = ways(whole.dims[0], mesh_.axes);
  const std::vector<Axis> shards = without(shard_axes(mesh_.axes, of), whole.dims);
  whole.dims[0].insert(whole.dims[0].end(), shards.begin(), shards.end());
  const auto parts = balanced_sizes(shape[0] / blocks, ways(shards, mesh_.axes));
  if (parts.front() == parts.back()) return whole;
  whole.sizes.resize(shape.size());
  for (std::int64_t block = 0; block < blocks; ++block)
    whole.sizes[0].insert(whole.sizes[0].end(), parts.begin(), parts.end());
  return whole;
}

void RoleParameters::fill(Parameter& parameter) const {
  parameter.own =
      is_cut(parameter) ? cut(parameter.whole, parameter.shape, parameter.of) : parameter.whole;
  const std::uint64_t key = key_of(options_.seed, parameter.name);
  std::array<std::vector<double>, 4> values;  // and moments and gradients
  for (std::int64_t i = 0; i < whole_of(parameter.shape).elements(); ++i) {
    const bool nudged = parameter.name == options_.nudge.parameter && i == options_.nudge.index;
    values[0].push_back(initial_value(parameter, uniform(key_of(key, "value"), i)) +
                        (nudged ? options_.nudge.amount : 0));
    values[1].push_back(0.02 * uniform(key_of(key, "first"), i) - 0.01);
    values[2].push_back(1e-4 * (0.5 + uniform(key_of(key, "second"), i)));
    values[3].push_back(0);
  }
  const std::array arrays{&parameter.kept, &parameter.first_moment, &parameter.second_moment,
                          &parameter.gradients};
  for (std::size_t i = 0; i < arrays.size(); ++i)
    *arrays[i] = scatter({mesh_, parameter.own}, parameter.shape, values[i]);
  parameter.summands = constant(parameter, 0);
  if (states().gather == Gather::kEndOfStep && is_cut(parameter))  // of the step before
    parameter.gathered = scatter({mesh_, parameter.whole}, parameter.shape, values[0]);
}

Arrays RoleParameters::constant(const Parameter& parameter, double value) const {
  const auto count = static_cast<std::size_t>(whole_of(parameter.shape).elements());
  return scatter({mesh_, parameter.whole}, parameter.shape, std::vector<double>(count, value));
}

// --- passes -------------------------------------------------------------------------------------

Tensors RoleParameters::read(std::int32_t unit, const Graph& graph) const {
  Tensors tensors;
  for (const Use& use : uses_.at(unit)) {
    const Parameter& parameter = parameters_[use.parameter];
    Arrays values = parameter.gathered;
    if (!is_cut(parameter)) values = parameter.kept;
    for (const auto& [of, buckets] : gathered_) {
      for (const auto& [bucket, whole] : buckets) {
        const auto found = whole.find(use.parameter);
        if (of == unit && found != whole.end()) values = found->second;
      }
    }
    if (values.of_position.empty()) values = constant(parameter, kNoNumber);
    if (use.transposed) values = turned(parameter, values, true);
    tensors[use.tensor] = {*graph[use.tensor].pinned, std::move(values)};
  }
  return tensors;
}

void RoleParameters::accumulate(std::int32_t unit, const std::map<TensorId, TensorId>& gradient_of,
                                const Tensors& tensors) {
  for (const Use& use : uses_.at(unit)) {
    Parameter& parameter = parameters_[use.parameter];
    if (parameter.frozen) continue;
    const auto gradient = gradient_of.find(use.tensor);
    if (gradient == gradient_of.end()) continue;
    const Arrays& values = tensors.at(gradient->second).shards;
    add_to(parameter.summands, use.transposed ? turned(parameter, values, false) : values);
  }
}

// The table as it lies in the graph of the projection, or from there.
Arrays RoleParameters::turned(const Parameter& table, const Arrays& values, bool to_graph) const {
  const Slices slices(Layout{mesh_, table.whole}, table.shape);
  Arrays result = values;
  for (std::int64_t p = 0; p < mesh_.size(); ++p) {
    const Box box = slices.of(p);
    const auto& from = values.of_position[static_cast<std::size_t>(p)];
    auto rows = static_cast<std::size_t>(box.end[0] - box.begin[0]);
    if (!to_graph) rows = from.size() / rows;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::size_t columns = from.size() / rows;
      result.of_position[static_cast<std::size_t>(p)][i % columns * rows + i / columns] = from[i];
    }
  }
  return result;
}

void RoleParameters::end(const Action& pass, plan::ActionId id) {
  if ((pass.gives_back & plan::kWhole) != 0)
    std::erase_if(gathered_, [&](const auto& buffer) { return pass.units.contains(buffer.first); });
  const auto it = ended_.find(id);
  if (it == ended_.end()) return;
  if (ended_gradients_.size() == 2) ended_gradients_.pop_front();
  for (auto& ended = ended_gradients_.emplace_back(); const std::int32_t bucket : it->second)
    ended[bucket] = take_summands(bucket);
}

// The summands of the bucket, in whose place is nothing yet now.
RoleParameters::ByParameter RoleParameters::take_summands(std::int32_t bucket) {
  ByParameter taken;
  for (const std::size_t i : parameters_in(bucket, true))
    taken[i] = std::exchange(parameters_[i].summands, constant(parameters_[i], 0));
  return taken;
}

// --- data parallelism ---------------------------------------------------------------------------

void RoleParameters::gather(const Action& action) {
  ByParameter values;
  for (const std::size_t i : parameters_in(action.what, false)) {
    const Parameter& parameter = parameters_[i];
    values[i] = convert(parameter.kept, parameter.shape, parameter.own, parameter.whole, mesh_);
  }
  if ((action.takes & plan::kWhole) != 0)
    return hold(gathered_, units_of(action.what).front(), action.what, std::move(values));
  for (auto& [i, whole] : values) parameters_[i].gathered = std::move(whole);
}

void RoleParameters::reduce(const Action& action) {
  ByParameter summands;
  if ((action.gives_back & plan::kGradient) == 0) summands = take_summands(action.what);
  const auto ended = std::ranges::find_if(
      ended_gradients_, [&](const auto& buckets) { return buckets.contains(action.what); });
  if (ended != ended_gradients_.end()) {
    summands = std::move(ended->extract(action.what).mapped());
    if (ended->empty()) ended_gradients_.erase(ended);
  }
  for (const std::size_t i : parameters_in(action.what, true)) {
    const auto it = summands.try_emplace(i, constant(parameters_[i], kNoNumber)).first;
    add_up(parameters_[i], it->second, copies_of(parameters_[i]));
  }
}

// Gradients get the sum of `summands` over these axes.
void RoleParameters::add_up(Parameter& parameter, const Arrays& summands,
                            std::vector<Axis> over) const {
  Attribute from = parameter.whole;
  Attribute to = parameter.own;
  to.partial = sums_over(parameter.also_partial);
  over.insert(over.end(), parameter.also_partial.begin(), parameter.also_partial.end());
  std::ranges::sort(over);
  from.partial = sums_over(over);
  add_to(parameter.gradients, convert(summands, parameter.shape, from, to, mesh_));
}

void RoleParameters::settle() {
  for (Parameter& parameter : parameters_) {
    add_up(parameter, parameter.summands, {});
    parameter.summands = constant(parameter, 0);
  }
}

void RoleParameters::reduce_copies(const std::vector<Axis>& axes) {
  for (Parameter& parameter : parameters_) {
    if (parameter.also_partial != axes) continue;
    Attribute from = parameter.own;
    from.partial = sums_over(axes);
    parameter.gradients = convert(parameter.gradients, parameter.shape, from, parameter.own, mesh_);
  }
}

// --- end of the step ----------------------------------------------------------------------------

Parameter& RoleParameters::tied() {
  const auto it = std::ranges::find(parameters_, true, &Parameter::tied);
  FORESHARD_CHECK(it != parameters_.end());
  return *it;
}

double RoleParameters::squared_norm(bool counts_tied) const {
  double sum = 0;
  for (const Parameter& parameter : parameters_) {
    if (parameter.tied && !counts_tied) continue;
    for (const double g : foreshard::execute::gather<double>({mesh_, parameter.own},
                                                             parameter.shape, parameter.gradients))
      sum += g * g;
  }
  return sum;
}

void RoleParameters::update(double clip_factor, std::string_view rule) {
  for (Parameter& parameter : parameters_)
    if (!parameter.frozen) update_by(rule, parameter, {options_, mesh_, clip_factor});
}

std::vector<Held> RoleParameters::held() const {
  std::vector<Held> list;
  const auto hold = [&](const Parameter& parameter, const std::string& suffix,
                        const Attribute& lies, const Arrays& arrays) {
    const Slices slices(Layout{mesh_, lies}, parameter.shape);
    for (std::int64_t p = 0; p < mesh_.size(); ++p) {
      const auto position = static_cast<std::size_t>(p);
      list.push_back({.tensor = parameter.name + suffix,
                      .rank = mesh_.ranks[position],
                      .indices = logical_indices(parameter.shape, slices.of(p)),
                      .values = arrays.of_position[position]});
    }
  };
  for (const Parameter& parameter : parameters_) {
    if (states().gather == Gather::kEndOfStep && is_cut(parameter)) {
      hold(parameter, "", parameter.whole, parameter.gathered);
    } else {
      hold(parameter, "", parameter.own, parameter.kept);
    }
    if (parameter.frozen) continue;
    hold(parameter, ".gradient", parameter.own, parameter.gradients);
    hold(parameter, ".first_moment", parameter.own, parameter.first_moment);
    hold(parameter, ".second_moment", parameter.own, parameter.second_moment);
  }
  return list;
}

}  // namespace foreshard::execute
