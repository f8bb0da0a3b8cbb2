/// \file
/// Kernels: what a device is asked to compute, in the detail that both a time model and a real
/// execution need. A kernel stands for one launch and names its mathematical shape, never a
/// duration.
///
///     Gemm{.m = 2048, .n = 12288, .k = 12288, .dtype = DType::kBf16}
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"

namespace foreshard {

enum class DType : std::uint8_t { kFp32, kTf32, kFp16, kBf16, kFp8, kFp4, kInt8, kInt32, kInt64 };

std::string_view name_of(DType dtype);
/// \return nothing if no type has that name.
std::optional<DType> find_dtype(std::string_view name);
/// The names of all types, in the order of the enumerators.
std::vector<std::string> dtype_names();
/// Bytes that one element takes in memory (tf32 is stored as fp32, two numbers of fp4 in one byte).
Bytes size_of(DType dtype);

enum class Direction : std::uint8_t { kForward, kBackward };

/// Which elements of a product's operand share a scale, where the matrix units do not apply scales
/// themselves: scales that change along k are then applied to partial sums outside these units.
enum class Scales : std::uint8_t {
  kTensor,   ///< All elements; or the matrix units apply the scales, or there are none.
  kBlocks,   ///< 128 elements of a row of the first operand, 128 x 128 of the second.
  kVectors,  ///< 128 elements along k of both operands: the gradient of a weight.
};

/// "blocks". \pre `scales` is one of the enumerators.
std::string_view name_of(Scales scales);
/// \return nothing if no scales have that name.
std::optional<Scales> find_scales(std::string_view name);

/// A product of matrices: D[b] = A[b] B[b] for b < batch; A is m x k, B is k x n, D is m x n. With
/// `accumulate`, D += A B in fp32 (a fused weight-gradient accumulation). Without `matrix_units`,
/// it runs on the vector units, because the library has no kernel for it that uses the matrix
/// units. `apart`: each product of the batch is a launch of its own, on a few streams in turn, as
/// for experts whose shapes differ.
struct Gemm {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType dtype = DType::kBf16;
  bool accumulate = false;
  bool matrix_units = true;
  Scales scales = Scales::kTensor;
  bool apart = false;
  auto operator<=>(const Gemm&) const = default;
};
/// Whether the rows of all its matrices are multiples of 16 bytes long, as the loads of the matrix
/// units require, or its type has at least 4 bytes. In a product that adds to a weight's gradient
/// in fp32 (`accumulate`), k (tokens) lies across the rows of both operands: any k will do.
/// Not modelled: that this holds for other gradients of weights, too.
bool has_aligned_rows(const Gemm& gemm);

/// Whose kernel computes attention. A device's efficiency file says what each kernel reaches on it.
enum class AttentionImplementation : std::uint8_t {
  kFused,         ///< The fused kernel that is usual on the device.
  kUnfused,       ///< Two batched products with softmax and dropout between them, not one kernel.
  kTritonFlash1,  ///< FlashAttention (2022) as its authors wrote it in Triton.
  kFlash2,        ///< FlashAttention-2 (2023).
  kFlash3,        ///< FlashAttention-3 (2024), for Hopper.
  kCudnn,         ///< cuDNN's, as Transformer Engine takes it from Hopper on.
};

/// "flash-2". \pre `implementation` is one of the enumerators.
std::string_view name_of(AttentionImplementation implementation);
/// \return nothing if no implementation has that name.
std::optional<AttentionImplementation> find_attention(std::string_view name);

/// Fused ("flash") attention: softmax(Q K^T / sqrt(d)) V without the score matrix in memory.
/// Where there are fewer queries than keys, the queries lie anywhere among the keys' positions.
struct Attention {
  std::int64_t batch = 1;
  std::int64_t query_heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t query_length = 0;
  std::int64_t key_length = 0;
  std::int64_t head_dim = 0;   ///< Width of queries and keys.
  std::int64_t value_dim = 0;  ///< Width of values and results; 0: head_dim.
  bool causal = true;
  /// Most keys that a query sees, its own as the last; 0: all. Only with `causal`.
  std::int64_t window = 0;
  /// Tokens of each sample, where a sequence of keys is packed of several: a query sees only its
  /// own sample. 0: the sequence is not packed. Where there are fewer queries than keys, each
  /// sample has its share of the queries.
  std::int64_t sample = 0;
  Direction direction = Direction::kForward;
  DType dtype = DType::kBf16;
  /// Never kUnfused, which is several other kernels.
  AttentionImplementation implementation = AttentionImplementation::kFused;
  std::int64_t value_width() const { return value_dim > 0 ? value_dim : head_dim; }
  auto operator<=>(const Attention&) const = default;
};
/// The average number of keys that a query sees, over the positions of all keys: half of the keys
/// under a causal mask; w - w^2 / 2n for n keys and a window of w, because queries at the first w
/// positions see fewer. In packed sequences, n is the number of keys in one sample.
double scores_per_query(const Attention& attention);
/// The sum of the widths of all its products. Forward there are two (queries with keys, weights
/// with values); backward there are five, three as wide as keys and two as wide as values.
/// Source: Dao, "FlashAttention-2", 2023, algorithms 1 and 2.
std::int64_t widths_of_products(const Attention& attention);

/// The kinds of memory-bound kernels. kernel.cc has one table line for each: its name, and what it
/// reads and writes per element.
enum class PassKind : std::uint8_t {
  kLayerNormForward,
  kLayerNormBackward,
  kRmsNormForward,
  kRmsNormBackward,
  kGeluForward,
  kGeluBackward,
  kSwigluForward,  ///< `columns` counts the outputs (half of the inputs).
  kSwigluBackward,
  kSoftmaxForward,  ///< Scale, mask and softmax of attention scores, fused.
  kSoftmaxBackward,
  kLongSoftmaxForward,  ///< Softmax alone, of rows so long that each takes a block of threads.
  kLongSoftmaxBackward,
  kDropoutForward,
  kDropoutBackward,
  kBiasDropoutAddForward,  ///< Bias, dropout and residual addition, fused.
  kBiasDropoutAddBackward,
  kResidualAdd,
  kBiasAdd,
  kBiasGradient,  ///< Sum over rows.
  kRopeForward,
  kRopeBackward,
  kTranspose,  ///< A copy with another layout.
  kEmbeddingForward,
  kEmbeddingBackward,
  kCrossEntropyForward,  ///< rows x vocabulary logits (fp32 arithmetic).
  kCrossEntropyBackward,
  kGradientAccumulate,  ///< fp32 main gradient += gradient.
  kGradientNorm,        ///< Sum of squares of fp32 gradients.
  kAdam,                ///< Mixed-precision Adam on fp32 master weights, moments and gradients.
  kCast,                ///< Conversion between the pass's dtype and fp32.
  kZero,
  kTokenPermute,       ///< Rows gathered into (or scattered from) the experts' order.
  kUnary,              ///< One operand, one operation an element.
  kBinary,             ///< Two operands of the same shape.
  kTernary,            ///< Three: a selection, a backward pass that reads two tensors.
  kReduce,             ///< Rows to one number each; also pooling, counted over what it reads.
  kExpand,             ///< One number written to many places: the gradient of kReduce.
  kStatistics,         ///< Sum and sum of squares.
  kTopK,               ///< The largest few of each row.
  kQuantize,           ///< Conversion to fp8, with a scale that is known.
  kQuantizeFp4,        ///< The same to fp4.
  kQuantizeFp4Twice,   ///< The same to fp4 in two copies: along rows and along columns.
  kQuantizeTwice,      ///< Two copies, which differ in their scales: along rows and along columns.
  kQuantizeTranspose,  ///< A copy and its transpose, for matrix units that want the contracted
                       ///< dimension to be contiguous. Other units read one copy either way.
  kDequantizeNf4,      ///< Conversion from nf4, whose scales are quantized too.
  kLambUpdate,         ///< LAMB: both moments and the direction of the step, in fp32.
  kLambApply,          ///< LAMB: the step in that direction, scaled by the norms of its tensor.
  kOptimizer,          ///< A first-order update with one fp32 state (momentum).
};

/// A memory-bound kernel over `rows` x `columns` elements. For optimizers, kGradient*, kCast and
/// kZero `rows` is the number of elements and `columns` is 1.
struct Pass {
  PassKind kind = PassKind::kCast;
  std::int64_t rows = 0;
  std::int64_t columns = 1;
  DType dtype = DType::kBf16;
  /// For kAdam: bytes per element of master weight and moments, which are read and written; 0: 12,
  /// all in fp32.
  std::int32_t state_bytes = 0;
  /// Kernels that share the rows, one after the other: one for each expert. Invariant: >= 1.
  std::int64_t launches = 1;
  auto operator<=>(const Pass&) const = default;
};

/// What a pass moves, per element of rows x columns.
struct PassTraffic {
  PassKind kind;
  std::string_view name;    ///< Name in Program JSON and reports, for example "layer_norm_fwd".
  double read_elements;     ///< Elements of the pass's dtype read.
  double written_elements;  ///< Elements of the pass's dtype written.
  double other_bytes_read;  ///< Bytes read per element of data of fixed type (masks, fp32 state).
  double other_bytes_written;  ///< Bytes written per element of data of fixed type.
  double flops;                ///< Arithmetic per element (fp32).
};

/// The table line of `kind`. Not counted: row statistics, indices and per-column parameters, which
/// are small beside rows x columns.
const PassTraffic& traffic_of(PassKind kind);
/// \return nullptr if no pass has that name.
const PassTraffic* find_pass(std::string_view name);

/// The kernel of a softmax that nothing is fused with: a warp holds a row of up to 1,024 elements
/// and reads it once. Source: PyTorch, aten/src/ATen/native/cuda/SoftMax.cu, host_softmax.
PassKind softmax_alone(Direction direction, std::int64_t columns);

using Kernel = std::variant<Gemm, Attention, Pass>;

/// Arithmetic of the kernel. A Gemm has 2 b m n k; attention has 2 b h sq d for each key that a
/// query sees and each product, which is 4 b h sq sk d forward where queries see all keys and
/// values are as wide as keys.
Flops flops_of(const Kernel& kernel);
/// Bytes that must cross the memory interface if every operand is read and written once.
Bytes bytes_of(const Kernel& kernel);
/// "gemm 2048x12288x12288 bf16".
std::string describe(const Kernel& kernel);

}  // namespace foreshard
