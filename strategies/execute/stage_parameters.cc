#include "strategies/execute/internal/stage_parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

#include "strategies/execute/random.h"

namespace foreshard::execute {
namespace {

constexpr double kNotOwned = std::numeric_limits<double>::quiet_NaN();

// Parameters in the middle of training: nothing is zero, nothing is one, products keep their size.
double initial_value(const Entry& entry, double random) {
  const double centred = 2 * random - 1;
  if (entry.shape.size() == 1)
    return (entry.name.ends_with("norm.weight") ? 1.0 : 0.0) + 0.2 * centred;
  const auto rows = static_cast<double>(entry.shape.front());
  return centred * std::sqrt(3 / std::min(rows, 64.0));
}

std::vector<double> transposed(const std::vector<double>& values, std::int64_t rows,
                               std::int64_t columns) {
  std::vector<double> result(values.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      result[static_cast<std::size_t>(c * rows + r)] =
          values[static_cast<std::size_t>(r * columns + c)];
  }
  return result;
}

Box turned(const Box& box) {
  return {{box.begin[1], box.begin[0]}, {box.end[1], box.end[0]}};
}

std::int64_t extent(const Box& box, std::size_t dim) {
  return box.end[dim] - box.begin[dim];
}

std::ptrdiff_t offset(std::int64_t index) {
  return static_cast<std::ptrdiff_t>(index);
}

}  // namespace

StageParameters::StageParameters(const Strategy& strategy, const StepOptions& options,
                                 ProcessMesh mesh, TrainingAxes axes)
    : strategy_(strategy),
      sharding_(state_sharding(strategy)),
      options_(options),
      mesh_(std::move(mesh)),
      axes_(axes) {}

void StageParameters::add_entry(Bucket& bucket, Entry entry) const {
  entry.elements = entry.boxes.front().elements();
  for (const Box& box : entry.boxes) FORESHARD_CHECK(box.elements() == entry.elements);
  entry.offset =
      bucket.entries.empty() ? 0 : bucket.entries.back().offset + bucket.entries.back().elements;
  bucket.entries.push_back(std::move(entry));
}

void StageParameters::fill(Bucket& bucket) const {
  const std::int64_t count = bucket.entries.back().offset + bucket.entries.back().elements;
  bucket.padded = (count + replicas() - 1) / replicas() * replicas();
  const auto size = static_cast<std::size_t>(bucket.padded);
  for (std::int64_t p = 0; p < mesh_.size(); ++p) {
    const auto [begin, end] = owned(bucket, p);
    std::vector<double> parameters(size, 0.0);
    std::vector<double> first(size, kNotOwned);
    std::vector<double> second(size, kNotOwned);
    std::fill(first.begin() + begin, first.begin() + end, 0.0);
    std::fill(second.begin() + begin, second.begin() + end, 1.0);
    for (const Entry& entry : bucket.entries) {
      const std::uint64_t key = key_of(options_.seed, entry.name);
      auto at = static_cast<std::size_t>(entry.offset);
      for (const std::int64_t index :
           logical_indices(entry.shape, entry.boxes[static_cast<std::size_t>(p)])) {
        parameters[at] = initial_value(entry, uniform(key_of(key, "value"), index));
        if (entry.name == options_.nudge.parameter && index == options_.nudge.index)
          parameters[at] += options_.nudge.amount;
        if (std::cmp_greater_equal(at, begin) && std::cmp_less(at, end)) {
          first[at] = 0.02 * uniform(key_of(key, "first"), index) - 0.01;
          second[at] = 1e-4 * (0.5 + uniform(key_of(key, "second"), index));
        }
        ++at;
      }
    }
    if (sharding_.cuts_parameters || sharding_.gather == StateSharding::Gather::kStartOfStep) {
      std::fill(parameters.begin(), parameters.begin() + begin, kNotOwned);
      std::fill(parameters.begin() + end, parameters.end(), kNotOwned);
    }
    bucket.parameters.push_back(std::move(parameters));
    bucket.first_moment.push_back(std::move(first));
    bucket.second_moment.push_back(std::move(second));
    bucket.summands.emplace_back(size, 0.0);
  }
}

Unit StageParameters::add(const std::string& name, const Graph& graph,
                          const std::map<TensorId, std::vector<Axis>>& also_partial, bool tied) {
  Unit unit{.name = name};
  Bucket own;
  Bucket table{.tied = true};
  const std::size_t next = buckets_.size();
  std::vector<std::pair<TensorId, Place>> tables;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (tensor.role != TensorRole::kParameter) continue;
    const TensorId id{static_cast<std::int64_t>(i)};
    const Slices slices(Layout{mesh_, *tensor.pinned}, tensor.shape);
    Entry entry{.name = name.starts_with("layers.") ? name + "." + tensor.name : tensor.name,
                .shape = tensor.shape};
    for (std::int64_t p = 0; p < mesh_.size(); ++p) entry.boxes.push_back(slices.of(p));
    for (const auto& axes : tensor.pinned->dims)
      entry.split.insert(entry.split.end(), axes.begin(), axes.end());
    if (const auto it = also_partial.find(id); it != also_partial.end())
      entry.also_partial = it->second;

    const bool projection = tied && tensor.name == "logits.weight";
    if (projection) {
      entry.name = "embedding.weight";
      std::ranges::reverse(entry.shape);
      for (Box& box : entry.boxes) box = turned(box);
    }
    if (tied && (projection || tensor.name == "embedding.weight")) {
      const auto held = std::ranges::find(buckets_, true, &Bucket::tied);
      if (held != buckets_.end()) {
        FORESHARD_CHECK(held->entries.front().boxes == entry.boxes);
        const auto index = static_cast<std::size_t>(held - buckets_.begin());
        unit.places[id] = {index, 0, projection};
        unit.needed.push_back(index);
      } else {
        add_entry(table, std::move(entry));
        tables.push_back({id, {0, 0, projection}});
      }
      continue;
    }
    unit.places[id] = {next, own.entries.size(), false};
    add_entry(own, std::move(entry));
  }
  for (Bucket* bucket : {&own, &table}) {
    if (bucket->entries.empty()) continue;
    fill(*bucket);
    unit.owned.push_back(buckets_.size());
    unit.needed.push_back(buckets_.size());
    if (bucket->tied) {
      for (auto& [id, place] : tables)
        unit.places[id] = {buckets_.size(), place.entry, place.transposed};
    }
    buckets_.push_back(std::move(*bucket));
  }
  return unit;
}

std::pair<std::int64_t, std::int64_t> StageParameters::owned(const Bucket& bucket,
                                                             std::int64_t position) const {
  if (!sharding_.cuts_optimizer) return {0, bucket.padded};
  const std::int64_t part = bucket.padded / replicas();
  const std::int64_t d = coordinate_of(mesh_, position, axes_.data);
  return {d * part, (d + 1) * part};
}

Tensors StageParameters::parameters_of(const Unit& unit, const Graph& graph) const {
  Tensors tensors;
  for (const auto& [id, place] : unit.places) {
    const Bucket& bucket = buckets_[place.bucket];
    const Entry& entry = bucket.entries[place.entry];
    const Flat& flat = sharding_.cuts_parameters ? bucket.gathered : bucket.parameters;
    Distributed tensor{*graph[id].pinned, {}};
    for (std::size_t p = 0; p < entry.boxes.size(); ++p) {
      const auto from = flat[p].begin() + offset(entry.offset);
      std::vector<double> values(from, from + offset(entry.elements));
      if (place.transposed)
        values = transposed(values, extent(entry.boxes[p], 0), extent(entry.boxes[p], 1));
      tensor.shards.of_position.push_back(std::move(values));
    }
    tensors[id] = std::move(tensor);
  }
  return tensors;
}

void StageParameters::accumulate(const Unit& unit, const Tensors& gradients) {
  for (const auto& [id, place] : unit.places) {
    Bucket& bucket = buckets_[place.bucket];
    const Entry& entry = bucket.entries[place.entry];
    const Distributed& gradient = gradients.at(id);
    for (std::size_t p = 0; p < entry.boxes.size(); ++p) {
      std::vector<double> values = gradient.shards.of_position[p];
      if (place.transposed)
        values = transposed(values, extent(entry.boxes[p], 1), extent(entry.boxes[p], 0));
      for (std::size_t i = 0; i < values.size(); ++i)
        bucket.summands[p][static_cast<std::size_t>(entry.offset) + i] += values[i];
    }
  }
}

// A bucket as a tensor [tensor-parallel rank, element].
Flat StageParameters::convert_flat(const Flat& flat, std::int64_t padded, bool from_split,
                                   bool from_partial, bool to_split) const {
  const Shape shape{mesh_.axes[static_cast<std::size_t>(axes_.tensor)].size, padded};
  Attribute from{.dims = {{axes_.tensor}, {}}};
  Attribute to = from;
  if (from_split) from.dims[1] = {axes_.data};
  if (from_partial) from.partial = sums_over({axes_.data});
  if (to_split) to.dims[1] = {axes_.data};
  const std::int64_t part = padded / replicas();
  Shards<double> shards;
  for (std::int64_t p = 0; p < mesh_.size(); ++p) {
    const auto& values = flat[static_cast<std::size_t>(p)];
    if (!from_split) {
      shards.of_position.push_back(values);
      continue;
    }
    const auto begin = values.begin() + coordinate_of(mesh_, p, axes_.data) * part;
    shards.of_position.emplace_back(begin, begin + part);
  }
  const auto converted = convert(shards, shape, from, to, mesh_);
  if (!to_split) return converted.of_position;
  Flat result;
  for (std::int64_t p = 0; p < mesh_.size(); ++p) {
    std::vector<double> values(static_cast<std::size_t>(padded), kNotOwned);
    std::ranges::copy(converted.of_position[static_cast<std::size_t>(p)],
                      values.begin() + coordinate_of(mesh_, p, axes_.data) * part);
    result.push_back(std::move(values));
  }
  return result;
}

void StageParameters::gather(const Unit& unit) {
  if (!sharding_.cuts_parameters) return;
  for (const std::size_t index : unit.needed) {
    Bucket& bucket = buckets_[index];
    bucket.gathered = convert_flat(bucket.parameters, bucket.padded, true, false, false);
  }
}

void StageParameters::release(const Unit& unit) {
  for (const std::size_t index : unit.needed) buckets_[index].gathered.clear();
}

void StageParameters::gather_all() {
  if (!sharding_.cuts_optimizer || sharding_.cuts_parameters) return;
  for (Bucket& bucket : buckets_) {
    // Each rank knows the new values of what it owns alone.
    bucket.parameters = convert_flat(bucket.parameters, bucket.padded, true, false, false);
  }
}

void StageParameters::reduce(const Unit& unit) {
  for (const std::size_t index : unit.owned) {
    Bucket& bucket = buckets_[index];
    Flat sums = replicas() > 1 ? convert_flat(bucket.summands, bucket.padded, false, true,
                                              sharding_.cuts_optimizer)
                               : bucket.summands;
    for (auto& values : bucket.summands) std::ranges::fill(values, 0.0);
    if (bucket.gradients.empty()) {
      bucket.gradients = std::move(sums);
      continue;
    }
    for (std::size_t p = 0; p < sums.size(); ++p) {
      for (std::size_t i = 0; i < sums[p].size(); ++i) bucket.gradients[p][i] += sums[p][i];
    }
  }
}

// Elements that data-parallel ranks do not own are sent too, as lowering counts them, and stay NaN.
void StageParameters::reduce_replicated() {
  for (Bucket& bucket : buckets_) {
    for (const Entry& entry : bucket.entries) {
      if (entry.also_partial.empty()) continue;
      const Shape shape{replicas(), entry.elements};
      const Attribute to{.dims = {{axes_.data}, {}}};
      Attribute from = to;
      from.partial = sums_over(entry.also_partial);
      Shards<double> shards;
      for (const auto& values : bucket.gradients) {
        const auto begin = values.begin() + offset(entry.offset);
        shards.of_position.emplace_back(begin, begin + offset(entry.elements));
      }
      const auto sums = convert(shards, shape, from, to, mesh_);
      for (std::size_t p = 0; p < sums.of_position.size(); ++p)
        std::ranges::copy(sums.of_position[p], bucket.gradients[p].begin() + offset(entry.offset));
    }
  }
}

double StageParameters::squared_norm(std::int64_t position, bool counts_tied) const {
  double sum = 0;
  for (const Bucket& bucket : buckets_) {
    if (bucket.tied && !counts_tied) continue;
    const auto [begin, end] = owned(bucket, position);
    const auto& values = bucket.gradients[static_cast<std::size_t>(position)];
    for (const Entry& entry : bucket.entries) {
      const bool copy = std::ranges::find(entry.split, axes_.tensor) == entry.split.end() &&
                        coordinate_of(mesh_, position, axes_.tensor) > 0;
      if (copy) continue;
      const std::int64_t last = std::min(end, entry.offset + entry.elements);
      for (std::int64_t i = std::max(begin, entry.offset); i < last; ++i)
        sum += values[static_cast<std::size_t>(i)] * values[static_cast<std::size_t>(i)];
    }
  }
  return sum;
}

// Kingma and Ba, "Adam", ICLR 2015, algorithm 1, with decoupled weight decay.
void StageParameters::update(double clip_factor) {
  const AdamOptions& adam = options_.adam;
  const auto t = static_cast<double>(adam.step);
  for (Bucket& bucket : buckets_) {
    for (std::int64_t p = 0; p < mesh_.size(); ++p) {
      const auto position = static_cast<std::size_t>(p);
      const auto [begin, end] = owned(bucket, p);
      auto& parameters = bucket.parameters[position];
      for (auto i = static_cast<std::size_t>(begin); std::cmp_less(i, end); ++i) {
        const double g = bucket.gradients[position][i] * clip_factor;
        double& m = bucket.first_moment[position][i];
        double& v = bucket.second_moment[position][i];
        m = adam.beta1 * m + (1 - adam.beta1) * g;
        v = adam.beta2 * v + (1 - adam.beta2) * g * g;
        const double m_hat = m / (1 - std::pow(adam.beta1, t));
        const double v_hat = v / (1 - std::pow(adam.beta2, t));
        parameters[i] -= adam.learning_rate * (m_hat / (std::sqrt(v_hat) + adam.epsilon) +
                                               adam.weight_decay * parameters[i]);
      }
      // What others updated is not known here until it is gathered.
      std::fill(parameters.begin(), parameters.begin() + begin, kNotOwned);
      std::fill(parameters.begin() + end, parameters.end(), kNotOwned);
    }
  }
}

std::vector<Held> StageParameters::held(const Flat Bucket::*values, const std::string& suffix,
                                        bool all) const {
  std::vector<Held> list;
  for (const Bucket& bucket : buckets_) {
    for (const Entry& entry : bucket.entries) {
      for (std::int64_t p = 0; p < mesh_.size(); ++p) {
        const auto position = static_cast<std::size_t>(p);
        const auto [begin, end] =
            all ? std::pair<std::int64_t, std::int64_t>{0, bucket.padded} : owned(bucket, p);
        Held held{.tensor = entry.name + suffix, .rank = mesh_.ranks[position]};
        const auto indices = logical_indices(entry.shape, entry.boxes[position]);
        for (std::int64_t i = 0; i < entry.elements; ++i) {
          const std::int64_t at = entry.offset + i;
          if (at < begin || at >= end) continue;
          held.indices.push_back(indices[static_cast<std::size_t>(i)]);
          held.values.push_back((bucket.*values)[position][static_cast<std::size_t>(at)]);
        }
        if (!held.indices.empty()) list.push_back(std::move(held));
      }
    }
  }
  return list;
}

}  // namespace foreshard::execute
