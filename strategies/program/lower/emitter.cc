// Operators of a sharded graph as tasks: unit_block.cc calls emit() for the parts of a block, in
// order.
#include "strategies/program/lower/emitter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

#include "strategies/graph/distribute.h"
#include "strategies/graph/operators/build.h"
#include "strategies/program/lower/block.h"

namespace foreshard::lower {
namespace {

using program::Communication;
using program::Task;

const Conversion& conversion(const ShardedGraph& sharded, std::int32_t index) {
  return sharded.conversions[static_cast<std::size_t>(index)];
}

std::vector<Kernel> kernels_for(const ShardedGraph& sharded, std::size_t i) {
  const Graph& graph = *sharded.graph;
  const Operator& op = graph.operators[i];
  std::vector<std::vector<std::int64_t>> local;
  std::size_t operand = 0;
  const auto add = [&](TensorId id) {
    local.push_back(largest_local_shape(graph[id].shape, sharded.operators[i].operands[operand++],
                                        sharded.mesh));
  };
  for (const TensorId id : op.inputs) add(id);
  for (const TensorId id : op.outputs) add(id);
  return kernels_of(graph, op, local);
}

// Launch work for kernel `k` of an operator.
double launches_of(const std::vector<Kernel>& kernels, std::size_t k, const LaunchCost& launching) {
  if (kernels.size() > 1) return launching.of_several;
  const auto* gemm = std::get_if<Gemm>(&kernels[k]);
  const bool is_of_weights = gemm != nullptr && (gemm->batch == 1 || gemm->apart);
  if (!is_of_weights) return 1;
  return size_of(gemm->dtype) < 2_B ? launching.quantized : launching.product;
}

}  // namespace

LaunchCost launch_cost_of(const Strategy& strategy) {
  const Framework& framework = *strategy.framework;
  return {.captured = strategy.cuda_graphs,
          .product = framework.product_launches,
          .quantized = framework.quantized_product_launches,
          .of_several = framework.eager_launches};
}

void Emitter::emit(const ShardedGraph& sharded, const std::vector<std::size_t>& selected,
                   std::set<std::int32_t>& done) {
  const Graph& graph = *sharded.graph;
  converted_.clear();
  // Only communications stay in `producer_`. Kernels of the graph before precede everything here on
  // the compute stream, but a conversion made while recomputing must still be awaited in the
  // backward graph, whose tensors keep the ids of the forward graph.
  std::erase_if(producer_, [&](const auto& one) {
    return !std::holds_alternative<Communication>(
        block_.tasks[static_cast<std::size_t>(one.second)].body);
  });
  for (const std::int32_t c : done) converted_[c] = std::nullopt;
  // A ring carries its conversions itself, unless they were made earlier.
  rings_.clear();
  for (const std::size_t i : selected) {
    auto ring = ring_of(sharded, i);
    if (!ring || converted_.contains(ring->keys)) continue;
    converted_[ring->keys] = std::nullopt;
    if (ring->gradients) converted_[*ring->gradients] = std::nullopt;
    rings_[i] = *std::move(ring);
  }
  std::set<TensorId> produced;
  // Conversions of each tensor that a selected operator needs, ascending.
  std::map<TensorId, std::set<std::int32_t>> needed;
  for (const std::size_t i : selected) {
    produced.insert(graph.operators[i].outputs.begin(), graph.operators[i].outputs.end());
    for (const std::int32_t c : sharded.operators[i].conversions)
      needed[conversion(sharded, c).tensor].insert(c);
  }
  for (std::size_t n = 0; n < selected.size(); ++n) {
    const std::size_t i = selected[n];
    for (const std::int32_t c : sharded.operators[i].conversions) convert(sharded, c);
    // A tensor saved earlier can be converted while the operator before its reader computes.
    if (overlap_.conversions && n + 1 < selected.size()) {
      for (const std::int32_t c : sharded.operators[selected[n + 1]].conversions) {
        if (!produced.contains(conversion(sharded, c).tensor)) convert(sharded, c);
      }
    }
    launch(sharded, i);
    for (const std::int32_t c : sharded.after_operator[i]) {
      convert(sharded, c);
      // The tensor now has the converted layout: later readers wait for the conversion.
      if (const auto last = converted_.at(c)) producer_[conversion(sharded, c).tensor] = *last;
    }
    // Conversions of the result that other operators need can start now, beside those in between.
    std::set<std::int32_t> ready;
    for (const TensorId output : graph.operators[i].outputs) {
      const auto wishes = needed.find(output);
      if (wishes != needed.end()) ready.insert(wishes->second.begin(), wishes->second.end());
    }
    for (const std::int32_t c : ready) convert(sharded, c);
  }
  for (const auto& [c, last] : converted_) done.insert(c);
}

void Emitter::convert(const ShardedGraph& sharded, const std::vector<std::int32_t>& conversions,
                      std::set<std::int32_t>& done) {
  for (const std::int32_t c : conversions) {
    if (!done.contains(c)) convert(sharded, c);
    done.insert(c);
  }
}

std::optional<std::int32_t> Emitter::ready(TensorId tensor) const {
  const auto found = producer_.find(tensor);
  if (found != producer_.end()) return found->second;
  return last_kernel_ < 0 ? std::nullopt : std::optional(last_kernel_);
}

std::vector<std::int32_t> Emitter::behind(TensorId tensor) const {
  const auto task = ready(tensor);
  return task ? std::vector{*task} : std::vector<std::int32_t>{};
}

void Emitter::convert(const ShardedGraph& sharded, std::int32_t index) {
  if (converted_.contains(index)) return;
  const Conversion& wish = conversion(sharded, index);
  const Tensor& tensor = (*sharded.graph)[wish.tensor];
  std::vector<std::int32_t> after = behind(wish.tensor);
  // A tensor that comes from the block before is ready when the compute stream gets here. If
  // there is no kernel to wait for, its conversion runs on the compute stream itself.
  const auto where = stream(after.empty() ? kComputeStream : kTensorStream);
  const std::size_t first = block_.tasks.size();
  const auto last = append_reshard(block_, tensor.name, tensor.shape, tensor.dtype, wish.from,
                                   wish.to, sharded.mesh, where, std::move(after), planner_);
  if (open_) capture(first);
  converted_[index] = last;
  if (last) pending_ = *last;
}

void Emitter::capture(std::size_t first) {
  for (std::size_t t = first; t < block_.tasks.size(); ++t) {
    Task& task = block_.tasks[t];
    if (std::holds_alternative<Kernel>(task.body) ||
        std::holds_alternative<Communication>(task.body))
      task.launches = 0;
  }
}

// If the CUDA graph launched last has the same capture, it continues and launches these kernels
// too. Otherwise a new one begins, and its launch is charged to the first task. Under
// Capture::kStep nothing is charged.
void Emitter::launch(const ShardedGraph& sharded, std::size_t index) {
  if (open_ == Capture::kStep) {
    const std::size_t begin = block_.tasks.size();
    kernel(sharded, index);
    return capture(begin);
  }
  const Capture as = sharded.graph->operators[index].capture;
  const std::size_t first = block_.tasks.size();
  kernel(sharded, index);
  if (block_.tasks.size() == first) return;
  const bool is_launched = is_captured(as, launching_.captured);
  if (is_launched) {
    block_.tasks[first].launches = 1;
    capture(open_ == as ? first : first + 1);
  }
  open_ = is_launched ? std::optional(as) : std::nullopt;
}

bool Emitter::gathers(std::int32_t task) const {
  const auto* one = std::get_if<Communication>(&block_.tasks[static_cast<std::size_t>(task)].body);
  return one != nullptr && one->kind == program::CollectiveKind::kAllGather &&
         one->purpose == program::Purpose::kTensor;
}

void Emitter::kernel(const ShardedGraph& sharded, std::size_t i) {
  const Operator& op = sharded.graph->operators[i];
  const ShardedOperator& how = sharded.operators[i];
  const auto kernels = kernels_for(sharded, i);
  const bool multiplies =
      overlap_.products && kernels.size() == 1 && std::holds_alternative<Gemm>(kernels.front());
  std::set<std::int32_t> after = kernels.empty() ? std::set<std::int32_t>{} : beside_;
  if (!kernels.empty()) beside_.clear();
  const auto wait_for = [&](std::int32_t task) {
    const bool is_gather = multiplies && gathers(task);
    (is_gather ? beside_ : after).insert(task);
  };
  for (const std::int32_t c : how.conversions) {
    if (const auto last = converted_.at(c)) wait_for(*last);
  }
  for (const TensorId input : op.inputs) {
    const auto it = producer_.find(input);
    if (it != producer_.end() && std::holds_alternative<Communication>(
                                     block_.tasks[static_cast<std::size_t>(it->second)].body))
      wait_for(it->second);
  }
  if (!overlap_.conversions && pending_ >= 0) wait_for(std::exchange(pending_, -1));

  if (kernels.empty()) {  // a view: its readers wait for the tensor that it views
    for (const TensorId output : op.outputs) {
      if (!after.empty()) producer_[output] = *after.rbegin();
    }
    return;
  }
  if (const auto ring = rings_.find(i); ring != rings_.end()) {
    last_kernel_ = append_ring(block_, sharded, i, ring->second, kernels,
                               {after.begin(), after.end()}, behind(op.inputs[1]));
    for (const TensorId output : op.outputs) producer_[output] = last_kernel_;
    return;
  }
  const bool counts = op.settings.has("counts_on_host") && op.settings.flag("counts_on_host");
  if (counts && last_kernel_ >= 0)
    block_.tasks.push_back(
        Task{.name = "token_counts", .body = program::Sync{}, .after = {last_kernel_}});
  // The first kernel may need nothing of what is gathered.
  const bool own_first = op.settings.has("own_first") && op.settings.flag("own_first");
  const std::size_t waits = own_first && kernels.size() > 1 ? 1 : 0;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    Task task{.name = k == 0 ? op.name : op.name + "." + std::to_string(k),
              .body = kernels[k],
              .stream = stream(kComputeStream)};
    task.launches = launches_of(kernels, k, launching_);
    if (k == waits) task.after.assign(after.begin(), after.end());
    block_.tasks.push_back(std::move(task));
    last_kernel_ = static_cast<std::int32_t>(block_.tasks.size()) - 1;
  }
  for (const TensorId output : op.outputs) producer_[output] = last_kernel_;
}

}  // namespace foreshard::lower
