// Muon: the momentum of layer weights is made orthogonal by Newton-Schulz iterations on whole
// matrices; all other parameters use AdamW. One iteration of X, an s x l matrix with s <= l, is
//
//     A = X X^T;  B = b A + c A A;  X = a X + B X        2 s s l + 2 s s s + 2 s s l  FLOP
//
// in bf16, where the products also do the sums. Before the iterations, the matrix is divided by its
// norm.
//
// Where ranks shard the optimizer states, each updates its shard of the momentum, and all gather
// the updates in bf16. Matrices are dealt out to the ranks, the ones with the most work first. For
// its matrices a rank also gathers the parts of the tensor-parallel ranks, which all do the same
// work; from the results it takes its own shard, which then continues as any other.
//
// Source: Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024, and
// KellerJordan/Muon, muon.py (five iterations; matrices dealt out by size); Liu et al., "Muon is
// Scalable for LLM Training", arXiv 2502.16982, algorithm 1 (distributed Muon: a gather in bf16
// between the reduction of gradients and the gather of parameters, 4 + 2 + 4 bytes an element where
// AdamW has 4 + 4); NVIDIA/Megatron-LM, megatron/core/optimizer/muon.py (muon_tp_mode: duplicated;
// embeddings, the output layer and vectors have Adam). Not modelled: a gather of only the matrices
// that a rank works on (algorithm 1 moves between nothing and as much as this gather); matrices
// that straddle the shards of two ranks, both of which compute the whole; memory for results of
// products (a gathered matrix has its own); symmetric products at half the cost; separate
// orthogonalization of query, key and value, or of gate and up projections (--muon-split-qkv).
#include <algorithm>
#include <numeric>

#include "strategies/parallelism/internal/optimizers.h"

namespace foreshard::optimizers {
namespace {

constexpr std::int64_t kIterations = 5;
constexpr DType kProducts = DType::kBf16;

std::vector<Moment> muon_moments(const Optimizer&, bool is_matrix) {
  const Moment first{.dtype = DType::kFp32, .bytes = size_of(DType::kFp32)};
  Moment second = first;
  second.is_second = true;
  return is_matrix ? std::vector{first} : std::vector{first, second};
}

std::int64_t elements_in(const UpdatedParameters& of, const std::vector<MeshAxis>& mesh) {
  return std::transform_reduce(of.matrices.begin(), of.matrices.end(), std::int64_t{0}, std::plus(),
                               [&](const MatrixGroup& one) { return elements_of(one, mesh); });
}

double work(const MatrixGroup& one) {
  const auto s = static_cast<double>(std::min(one.rows, one.columns));
  const auto l = static_cast<double>(std::max(one.rows, one.columns));
  return s * s * (2 * l + s);
}

// The matrices dealt to the rank with the most work, which is the first one.
std::vector<MatrixGroup> dealt(const UpdatedParameters& of, const std::vector<MeshAxis>& mesh) {
  std::vector<MatrixGroup> own = of.matrices;
  std::ranges::stable_sort(own, std::greater(), work);
  const std::int64_t ranks = ways(of.cut, mesh);
  const auto rounds = [&](std::int64_t matrices) { return (matrices + ranks - 1) / ranks; };
  std::int64_t before = 0;
  for (MatrixGroup& one : own) {
    const std::int64_t behind = before + one.count;
    one.count = rounds(behind) - rounds(before);
    before = behind;
  }
  std::erase_if(own, [](const MatrixGroup& one) { return one.count == 0; });
  return own;
}

// Gathers one matrix after another, so that memory for one is enough.
void gather(std::vector<UpdateStep>& steps, std::string_view name, const MatrixGroup& of,
            std::int64_t elements, const std::vector<Axis>& axes,
            const std::vector<MeshAxis>& mesh) {
  if (ways(axes, mesh) > 1)
    steps.emplace_back(UpdateExchange{
        .name = name, .elements = elements, .dtype = kProducts, .axes = axes, .times = of.count});
}

void make_orthogonal(std::vector<UpdateStep>& steps, const MatrixGroup& of) {
  const std::int64_t s = std::min(of.rows, of.columns);
  const std::int64_t l = std::max(of.rows, of.columns);
  const auto add = [&](std::string_view name, Kernel kernel, std::int64_t times) {
    steps.emplace_back(UpdateKernel{.name = name, .kernel = kernel, .times = times * of.count});
  };
  add("muon_norm", Pass{PassKind::kReduce, of.rows, of.columns, kProducts}, 1);
  add("muon_scale", Pass{PassKind::kUnary, of.rows, of.columns, kProducts}, 1);
  for (const Gemm& product : {Gemm{.m = s, .n = s, .k = l, .dtype = kProducts},
                              Gemm{.m = s, .n = s, .k = s, .dtype = kProducts},
                              Gemm{.m = s, .n = l, .k = s, .dtype = kProducts}})
    add("newton_schulz", product, kIterations);
}

std::vector<UpdateStep> muon_update(const Update& update) {
  const std::int64_t in_matrices = update.matrix_elements();
  std::int64_t others = 0;
  for (const UpdatedParameters& of : update.updated)
    others += update.share(of.elements - elements_in(of, update.mesh), of);
  std::vector<UpdateStep> steps;
  if (others > 0)
    steps = adam_steps(update, others, static_cast<std::int64_t>(2 * size_of(DType::kFp32) / 1_B));
  if (in_matrices == 0) return steps;
  const auto pass = [&](std::string_view name, PassKind kind, DType dtype) {
    steps.emplace_back(UpdateKernel{.name = name, .kernel = Pass{kind, in_matrices, 1, dtype}});
  };
  pass("muon_momentum", PassKind::kBinary, DType::kFp32);
  pass("muon_nesterov", PassKind::kBinary, DType::kFp32);
  pass("muon_cast", PassKind::kCast, kProducts);
  for (const UpdatedParameters& of : update.updated) {
    for (const MatrixGroup& one : of.matrices)
      gather(steps, "muon_updates", one, elements_of(one, update.mesh) / one.count, of.cut,
             update.mesh);
    for (const MatrixGroup& one : dealt(of, update.mesh)) {
      gather(steps, "muon_parts", one, one.rows * one.columns, one.split, update.mesh);
      make_orthogonal(steps, one);
    }
  }
  pass("muon_decay", PassKind::kUnary, DType::kFp32);
  pass("muon_apply", PassKind::kBinary, DType::kFp32);
  if (has_master(update.optimizer, update.precision))
    pass("muon_copy", PassKind::kCast, update.precision);
  return steps;
}

}  // namespace

OptimizerRule muon() {
  return {.name = "muon",
          .doc =
              "Muon for weights of layers: one moment, made orthogonal as a whole matrix; AdamW "
              "for all others.",
          .whole_tensors = true,
          .moments = muon_moments,
          .steps = muon_update};
}

}  // namespace foreshard::optimizers
