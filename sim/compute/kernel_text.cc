// Reads a kernel from the text that describe() writes ("gemm 4096x4096x4096 bf16"), for tables of
// measured times and for calibration. Any other text gives nothing.
#include "sim/compute/kernel_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace foreshard {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// Parses "8x16x32" into exactly as many numbers as `numbers` holds; false for anything else.
template <std::size_t N>
bool read(std::string_view word, std::array<std::int64_t, N>& numbers,
          std::string_view separators) {
  const char* at = word.data();
  const char* const end = at + word.size();
  for (std::size_t i = 0; i < N; ++i) {
    const auto [next, status] = std::from_chars(at, end, numbers[i]);
    if (status != std::errc{} || numbers[i] < 0) return false;
    at = next;
    if (i + 1 == N) return at == end;
    if (at == end || *at != separators[i]) return false;
    ++at;
  }
  return false;
}

bool read(std::string_view word, DType& dtype) {
  for (int i = 0; i <= static_cast<int>(DType::kInt64); ++i) {
    if (name_of(static_cast<DType>(i)) != word) continue;
    dtype = static_cast<DType>(i);
    return true;
  }
  return false;
}

// gemm MxNxK [batch B] DTYPE [accumulate] [scaled SCALES] [apart] [vector]
std::optional<Kernel> gemm_from(const std::vector<std::string_view>& words) {
  Gemm gemm;
  std::array<std::int64_t, 3> extents{};
  if (words.size() < 3 || !read(words[1], extents, "xx")) return std::nullopt;
  gemm.m = extents[0];
  gemm.n = extents[1];
  gemm.k = extents[2];
  std::size_t next = 2;
  if (words[next] == "batch") {
    std::array<std::int64_t, 1> batch{};
    if (words.size() < 5 || !read(words[3], batch, "")) return std::nullopt;
    gemm.batch = batch[0];
    next = 4;
  }
  if (!read(words[next], gemm.dtype)) return std::nullopt;
  gemm.accumulate = words.size() > next + 1 && words[next + 1] == "accumulate";
  gemm.matrix_units = words.back() != "vector";
  gemm.apart = std::ranges::find(words, "apart") != words.end();
  if (const auto scaled = std::ranges::find(words, "scaled"); scaled != words.end()) {
    const auto scales = scaled + 1 == words.end() ? std::nullopt : find_scales(scaled[1]);
    if (!scales) return std::nullopt;
    gemm.scales = *scales;
  }
  return gemm;
}

// attention_fwd BxH/G seq QxK dim D[/V] [causal] [window W] [sample N] DTYPE [IMPLEMENTATION]
std::optional<Kernel> attention_from(const std::vector<std::string_view>& words) {
  Attention attention;
  attention.direction = words[0] == "attention_fwd" ? Direction::kForward : Direction::kBackward;
  std::array<std::int64_t, 3> heads{};
  std::array<std::int64_t, 2> lengths{};
  std::array<std::int64_t, 1> dim{};
  std::array<std::int64_t, 2> dims{};
  if (words.size() < 7 || !read(words[1], heads, "x/") || words[2] != "seq" ||
      !read(words[3], lengths, "x") || words[4] != "dim" ||
      (!read(words[5], dim, "") && !read(words[5], dims, "/")))
    return std::nullopt;
  attention.batch = heads[0];
  attention.query_heads = heads[1];
  attention.kv_heads = heads[2];
  attention.query_length = lengths[0];
  attention.key_length = lengths[1];
  attention.head_dim = dims[0] > 0 ? dims[0] : dim[0];
  attention.value_dim = dims[1];
  attention.causal = words[6] == "causal";
  std::size_t dtype = attention.causal ? 7 : 6;
  for (const auto& [word, count] :
       {std::pair("window", &attention.window), std::pair("sample", &attention.sample)}) {
    if (words.size() <= dtype + 1 || words[dtype] != word) continue;
    std::array<std::int64_t, 1> tokens{};
    if (!read(words[dtype + 1], tokens, "")) return std::nullopt;
    *count = tokens[0];
    dtype += 2;
  }
  if (words.size() <= dtype || !read(words[dtype], attention.dtype)) return std::nullopt;
  if (words.size() > dtype + 1) {
    const auto implementation = find_attention(words[dtype + 1]);
    if (!implementation) return std::nullopt;
    attention.implementation = *implementation;
  }
  return attention;
}

// NAME RxC DTYPE
std::optional<Kernel> pass_from(const std::vector<std::string_view>& words) {
  const PassTraffic* traffic = find_pass(words[0]);
  std::array<std::int64_t, 2> extents{};
  Pass pass;
  if (traffic == nullptr || words.size() != 3 || !read(words[1], extents, "x") ||
      !read(words[2], pass.dtype))
    return std::nullopt;
  pass.kind = traffic->kind;
  pass.rows = extents[0];
  pass.columns = extents[1];
  return pass;
}

}  // namespace

std::optional<Kernel> kernel_from(std::string_view text) {
  const auto words = words_of(text);
  if (words.empty()) return std::nullopt;
  std::optional<Kernel> kernel;
  if (words[0] == "gemm") {
    kernel = gemm_from(words);
  } else if (words[0] == "attention_fwd" || words[0] == "attention_bwd") {
    kernel = attention_from(words);
  } else {
    kernel = pass_from(words);
  }
  if (kernel && describe(*kernel) != text) return std::nullopt;
  return kernel;
}

}  // namespace foreshard
