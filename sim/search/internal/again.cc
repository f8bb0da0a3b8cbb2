#include "sim/search/internal/again.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace foreshard::search {
namespace {

using program::AxisGroup;
using program::Communication;

// The same axes in another mesh, whose axes may be in another order.
std::vector<Axis> in_mesh(const std::vector<Axis>& axes, const std::vector<MeshAxis>& from,
                          const std::vector<MeshAxis>& to) {
  std::vector<Axis> result;
  for (const Axis axis : axes) {
    const auto it =
        std::ranges::find(to, from[static_cast<std::size_t>(axis)].name, &MeshAxis::name);
    FORESHARD_CHECK(it != to.end());
    result.push_back(static_cast<Axis>(it - to.begin()));
  }
  std::ranges::sort(result);
  return result;
}

// The lesser value of each of the bytes that passes keep, hold and work with.
BlockBytes least_of(BlockBytes a, const BlockBytes& b) {
  a.kept = std::min(a.kept, b.kept);
  a.held = std::min(a.held, b.held);
  for (std::size_t form = 0; form < kForms; ++form) {
    a.work[form] = std::min(a.work[form], b.work[form]);
    a.trails[form] = a.trails[form] && b.trails[form];
  }
  return a;
}

}  // namespace

Result<Again> Again::of(const Model& model, const Strategy& strategy,
                        std::span<const Recomputation> ways) {
  Again result;
  result.ways_ = ways.size();
  result.mesh_ = mesh_of(strategy);
  result.variants_ = layers_of(model, strategy).variants;
  result.predictions_ = static_cast<std::size_t>(model.multi_token_prediction);
  result.tasks_.resize(result.blocks() * ways.size());
  result.bytes_.resize(result.tasks_.size());
  FORESHARD_TRY(lower::lower_with_recomputations(
      model, strategy, ways,
      [&](std::size_t way, std::size_t block, const lower::LoweredBlock& lowered) {
        const std::size_t place = block * ways.size() + way;
        const auto tasks = [&](const lower::Pieces& pass) {
          return PassTasks(lower::only_block(pass), result.works_);
        };
        Tasks& of = result.tasks_[place];
        of.forward = tasks(lowered.forward);
        of.backward = tasks(lowered.backward);
        of.is_split = lowered.split.has_value();
        if (of.is_split) {
          of.input = tasks(lowered.split->input);
          of.weight = tasks(lowered.split->weight);
        }
        result.bytes_[place] = bytes_of_passes(lowered);
      }));
  std::set<std::vector<Axis>> axes;
  for (const program::TaskBody& body : result.works_.all())
    if (const auto* what = std::get_if<Communication>(&body))
      if (const auto* group = std::get_if<AxisGroup>(&what->group)) axes.insert(group->axes);
  result.axes_.assign(axes.begin(), axes.end());
  return result;
}

const std::array<std::int32_t, kBlocks>& Again::indices(const Model& model,
                                                        const Strategy& strategy,
                                                        std::int64_t variants) {
  const auto [known, added] = indices_.try_emplace(variants);
  std::array<std::int32_t, kBlocks>& of_block = known->second;
  if (!added) return of_block;
  of_block.fill(-1);
  const std::vector<LayerVariant> layers = layers_of(model, strategy).variants;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {  // layers come after the embedding
    if (layers[layer].recomputation.how == Recompute::kNone) continue;
    const auto same = std::ranges::find(variants_, layers[layer]);
    FORESHARD_CHECK(same != variants_.end());
    of_block.at(1 + layer) = static_cast<std::int32_t>(same - variants_.begin());
  }
  if (variant_of_prediction(strategy).recomputation.how == Recompute::kNone) return of_block;
  for (std::size_t i = 0; i < predictions_; ++i)
    of_block.at(1 + layers.size() + i) = static_cast<std::int32_t>(variants_.size() + i);
  return of_block;
}

LeastBytes Again::least_bytes(const Model& model, const Strategy& base,
                              const std::array<BlockBytes, kBlocks>& bytes) const {
  const std::vector<LayerVariant> layers = layers_of(model, base).variants;
  std::vector<BlockBytes> least((ways_ + 1) * blocks());
  for (std::size_t block = 0; block < blocks(); ++block) {
    std::size_t plain = 1 + layers.size() + block - variants_.size();  // a prediction
    if (block < variants_.size()) {
      const auto same = std::ranges::find_if(layers, [&](const LayerVariant& other) {
        return other.kind == variants_[block].kind &&
               other.trained_before == variants_[block].trained_before;
      });
      FORESHARD_CHECK(same != layers.end());
      plain = 1 + static_cast<std::size_t>(same - layers.begin());
    }
    BlockBytes& of_any = least[ways_ * blocks() + block] = bytes.at(plain);
    for (std::size_t way = 0; way < ways_; ++way) {
      BlockBytes& of_way = least[way * blocks() + block];
      of_way = least_of(bytes.at(plain), this->bytes(block)[way]);
      of_any = least_of(of_any, of_way);
    }
  }
  return {blocks(), std::move(least)};
}

Result<std::span<const PassTimes>> Again::passes(const Layout& layout, std::int32_t devices) {
  std::vector<std::vector<Axis>> axes;
  for (const std::vector<Axis>& one : axes_) axes.push_back(in_mesh(one, mesh_, layout.mesh()));
  std::pair key{layout.group_kinds(axes, devices), devices};
  if (const auto known = times_.find(key); known != times_.end())
    return std::span<const PassTimes>(known->second);
  Works moved = works_;
  moved.change([&](Communication& what) {
    if (auto* group = std::get_if<AxisGroup>(&what.group))
      group->axes = in_mesh(group->axes, mesh_, layout.mesh());
  });
  FORESHARD_ASSIGN(const WorkTimes times, layout.work_times(moved, devices));
  std::vector<PassTimes> passes;
  passes.reserve(tasks_.size());
  for (const Tasks& tasks : tasks_) {
    PassTimes& of = passes.emplace_back();
    of.forward = tasks.forward.time(times);
    of.backward = tasks.backward.time(times);
    if (!tasks.is_split) continue;
    of.input = tasks.input.time(times);
    of.weight = tasks.weight.time(times);
  }
  return std::span<const PassTimes>(
      times_.emplace(std::move(key), std::move(passes)).first->second);
}

}  // namespace foreshard::search
