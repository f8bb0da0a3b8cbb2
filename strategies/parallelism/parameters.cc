#include "strategies/parallelism/parameters.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/check.h"

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/state_sharding.h"

namespace foreshard {
namespace {

// The part of the strategy's mesh with these coordinates on the pipeline axis. It has the
// strategy's axes, but the pipeline axis is replaced by an axis "end" with one rank per coordinate.
ProcessMesh part_of(const std::vector<MeshAxis>& mesh,
                    const std::vector<std::int64_t>& pipeline_coordinates) {
  ProcessMesh part;
  std::int64_t ranks = 1;
  for (const MeshAxis& axis : mesh) {
    MeshAxis kept = axis;
    if (axis.name == "pipeline")
      kept = {"end", static_cast<std::int64_t>(pipeline_coordinates.size())};
    part.axes.push_back(kept);
    ranks *= kept.size;
  }
  for (std::int64_t position = 0; position < ranks; ++position) {
    std::int64_t rest = position;
    std::int64_t rank = 0;
    std::int64_t stride = 1;
    for (std::size_t a = 0; a < mesh.size(); ++a) {
      const std::int64_t coordinate = rest % part.axes[a].size;
      rest /= part.axes[a].size;
      rank += stride * (mesh[a].name == "pipeline"
                            ? pipeline_coordinates[static_cast<std::size_t>(coordinate)]
                            : coordinate);
      stride *= mesh[a].size;
    }
    part.ranks.push_back(static_cast<std::int32_t>(rank));
  }
  return part;
}

// Shards the layout along the first dimension over the data-parallel ranks, within the cuts that
// the dimension already has.
void share(Layout& layout, const Shape& shape, Parameters of) {
  const std::vector<Axis> shards = without(shard_axes(layout.mesh.axes, of), layout.attribute.dims);
  const std::int64_t ranks = ways(shards, layout.mesh.axes);
  if (ranks == 1 || shape.empty()) return;
  auto& dims = layout.attribute.dims;
  const std::int64_t blocks = ways(dims[0], layout.mesh.axes);
  dims[0].insert(dims[0].end(), shards.begin(), shards.end());
  const std::int64_t rows = shape[0] / blocks;
  if (rows % ranks == 0) return;
  const std::int64_t most = (rows + ranks - 1) / ranks;
  layout.attribute.sizes.resize(shape.size());
  for (std::int64_t block = 0; block < blocks; ++block)
    for (std::int64_t i = 0; i < ranks; ++i)
      layout.attribute.sizes[0].push_back(std::clamp<std::int64_t>(rows - i * most, 0, most));
}

class Placer {
 public:
  Placer(const Model& model, const Strategy& strategy)
      : model_(model),
        strategy_(strategy),
        sharding_(state_sharding(strategy)),
        mesh_(mesh_of(strategy)),
        graphs_(graphs_of(model, strategy)) {}

  std::vector<PlacedTensor> run() {
    const std::int64_t stages = strategy_.pipeline_parallel;
    const std::vector<std::int64_t> first{0};
    const std::vector<std::int64_t> last{last_stage(strategy_)};
    const bool shared = model_.tables_behind() > 0;
    place(graphs_.embedding, "", first,
          shared && last != first ? std::vector<std::int64_t>{0, last.front()} : first);
    const auto split = layers_of_stages(strategy_, model_.layers);
    std::int64_t layer = 0;
    for (std::size_t piece = 0; piece < split.size(); ++piece) {
      const std::int64_t stage =
          schedule::stage_of(placement_of(strategy_), stages, static_cast<std::int64_t>(piece));
      for (std::int64_t i = 0; i < split[piece]; ++i, ++layer)
        place(graphs_.layers[model_.kind_index(layer, strategy_.unquantized_layers)],
              fmt::format("layers.{}.", layer), {stage}, {});
    }
    for (const Graph& prediction : graphs_.predictions)
      place(prediction, fmt::format("layers.{}.", layer++), last, {});
    place(graphs_.head, "", last, {});
    return std::move(tensors_);
  }

 private:
  // `table_at`: the stages that have the embedding's table; empty: it is placed elsewhere.
  void place(const Graph& graph, const std::string& prefix, const std::vector<std::int64_t>& stages,
             const std::vector<std::int64_t>& table_at) {
    const ProcessMesh mesh = part_of(mesh_, stages);
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
      const Tensor& tensor = graph.tensors[i];
      if (tensor.role != TensorRole::kParameter) continue;
      const bool projection = tensor.name == "logits.weight";
      if (projection && model_.ties_head()) continue;  // it is the embedding's table
      if (tensor.name.ends_with("_gate.weight") || tensor.name.ends_with("_gate.bias"))
        continue;  // it is half of the up projection's tensor
      const bool table = tensor.name == "embedding.weight";
      if (table && table_at.empty()) continue;
      PlacedTensor placed{
          .name = (tensor.name.starts_with("final_norm.") ? "" : prefix) + tensor.name,
          .dtype = tensor.dtype,
          .shape = tensor.shape,
          .layout = {.mesh = table ? part_of(mesh_, table_at) : mesh, .attribute = *tensor.pinned}};
      placed.layout.attribute.partial.clear();
      const bool is_up = tensor.name.ends_with("_up.weight") || tensor.name.ends_with("_up.bias") ||
                         tensor.name.ends_with("_up.adapter_out.weight");
      const bool is_half = strategy_.framework->gate_apart && !tensor.name.starts_with("experts");
      if (model_.activation == Activation::kSwiglu && is_up) part_halves(placed, is_half);
      placed.unpadded = placed.shape;
      if (table) placed.unpadded.front() = model_.vocabulary;
      if (projection || tensor.name == "logits.bias") placed.unpadded.back() = model_.vocabulary;
      add(std::move(placed), tensor, kind_of(graph, TensorId{static_cast<std::int64_t>(i)}));
    }
  }

  // [..., 2 f] -> [..., 2, f]; if the tensor is one half: [..., f] -> [..., 2, f].
  static void part_halves(PlacedTensor& tensor, bool is_half) {
    const std::int64_t both = tensor.shape.back() * (is_half ? 2 : 1);
    FORESHARD_CHECK(both % 2 == 0);
    tensor.shape.back() = 2;
    tensor.shape.push_back(both / 2);
    auto& dims = tensor.layout.attribute.dims;
    dims.insert(dims.end() - 1, std::vector<Axis>{});
  }

  void add(PlacedTensor parameter, const Tensor& tensor, Parameters of) {
    const Layout whole = parameter.layout;
    if (sharding_.cuts_parameters) share(parameter.layout, parameter.shape, of);
    tensors_.push_back(parameter);
    if (strategy_.mode == Mode::kForward || tensor.frozen) return;
    const std::string name = parameter.name;
    parameter.layout = whole;
    if (sharding_.cuts_optimizer) share(parameter.layout, parameter.shape, of);
    const Optimizer& optimizer = strategy_.optimizer;
    const auto keep = [&](StateKind kind, DType dtype) {
      parameter.dtype = dtype;
      parameter.kind = kind;
      parameter.name = fmt::format("{}.{}", name, name_of(kind));
      tensors_.push_back(parameter);
    };
    if (has_master(optimizer, parameter.dtype))
      keep(StateKind::kMaster, optimizer.remainders ? parameter.dtype : optimizer.master);
    for (const Moment& moment : rule_of(optimizer).moments(optimizer, is_matrix_of_layer(tensor)))
      keep(moment.is_second ? StateKind::kSecondMoment : StateKind::kFirstMoment, moment.dtype);
  }

  const Model& model_;
  const Strategy& strategy_;
  StateSharding sharding_;
  std::vector<MeshAxis> mesh_;
  TransformerGraphs graphs_;
  std::vector<PlacedTensor> tensors_;
};

}  // namespace

std::string_view name_of(StateKind kind) {
  switch (kind) {
    case StateKind::kParameter:
      return "parameter";
    case StateKind::kMaster:
      return "master";
    case StateKind::kFirstMoment:
      return "first_moment";
    case StateKind::kSecondMoment:
      return "second_moment";
  }
  FORESHARD_CHECK(false);
}

std::vector<PlacedTensor> parameters_of(const Model& model, const Strategy& strategy) {
  return Placer(model, strategy).run();
}

}  // namespace foreshard
