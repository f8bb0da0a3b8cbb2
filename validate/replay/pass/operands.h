/// \file
/// The arrays that a pass reads and writes, in the order in which both executors take them.
///
/// n = rows x columns; T is the pass's dtype; statistics, sums and numbers are fp32; += marks an
/// array that is read and written:
///   norm_fwd       x, y out, statistics (2 a row) out, parameters (2 a column; of rms_norm 1)
///   norm_bwd       dy, x, dx out, statistics, parameters, their gradients (as many) +=
///   gelu, unary    x [, dy], y out          swiglu_fwd  gate and up (2 n), y out
///   swiglu_bwd     dy, gate and up, their gradients (2 n) out
///   softmax_fwd    x, y out                 softmax_bwd dy, y, dx out
///   long_softmax_fwd, long_softmax_bwd      as softmax_fwd, softmax_bwd
///   dropout_fwd    x, y out, mask (1 byte) out          dropout_bwd  dy, mask, dx out
///   bias_dropout_add_fwd  x, residual, bias (a row), y out, mask out     _bwd  as dropout_bwd
///   residual_add, binary, ternary  x1 ... xk, y out     bias_add  x, bias, y out
///   bias_grad      dy, sums (one a column) +=           rope  x, cosine and sine, y out
///   transpose, token_permute, embedding_fwd  x, y out   embedding_bwd  dy, table +=
///   cross_entropy_fwd  logits, softmax (fp32) out, losses out      _bwd  softmax, dx out
///   grad_accumulate  g, sum (fp32) +=       grad_norm  g (fp32), sum of squares (1) +=
///   adam           g, parameter, moment, moment (fp32) +=, working copy out
///   momentum       g, parameter, moment (fp32) +=, working copy out
///   cast           x, y (fp32) out          zero  y out
///   quantize       x, y (fp8) out           _twice, _transpose  x, y (fp8) out, y (fp8) out
///   reduce, statistics, top_k  x, 1, 2 or kTopK times (number, index) a row out
///   expand         numbers (one a row), y out
///
/// Not modelled: scales (they are 1), and the transposition in quantize_transpose: its second copy
/// has the layout of the first, which causes the same traffic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay {

enum class Access : std::uint8_t { kRead, kWrite, kUpdate };

struct PassArray {
  std::int64_t count = 0;
  DType dtype = DType::kFp32;  ///< kInt8 for a mask, and for bytes with two fp4 numbers.
  Access access = Access::kRead;
  std::size_t bytes() const;
};

/// Number of elements that top_k takes from each row.
constexpr int kTopK = 8;

std::vector<PassArray> arrays_of(const Pass& pass);

/// Columns of one attention head, whose halves rope rotates: 128 or 64 if the columns allow it,
/// else all of them (an even number).
std::int64_t rope_head(std::int64_t columns);

/// Replaces an integer dtype by a floating-point dtype of the same size. Memory traffic, and so the
/// time, is the same.
Pass in_floating_point(Pass pass);

/// A pass on one core. The host executor runs it, and the GPU's kernels are checked against it.
///
/// Runs a pass; a pass without rows does nothing.
/// \param arrays  in the order of arrays_of.
void run_on_host(const Pass& pass, std::span<void* const> arrays);

}  // namespace foreshard::replay
