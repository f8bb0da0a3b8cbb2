/// \file
/// Makes target slices out of source slices: reads any box of a tensor, whatever files its parts
/// are in, row by row through buffers of a fixed size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"

#include "strategies/checkpoint/files.h"
#include "strategies/checkpoint/source.h"

namespace foreshard::checkpoint::internal {

/// A slice of the source, one for every distinct box: the first of its replicas that is not lost.
struct SourceSlice {
  Box box{};
  std::int32_t rank = 0;
  Location location{};  ///< file is -1 if all replicas are lost.
};
std::vector<SourceSlice> distinct_slices(const SourceTensor& tensor);

/// Cuts `box` into boxes of at most `most` bytes that follow each other in its row-major order.
/// \pre element <= most
void for_each_part(const Box& box, std::int64_t element, std::int64_t most,
                   const std::function<void(const Box&)>& visit);

/// Reads boxes for one thread.
class Gatherer {
 public:
  /// `bounce`: the buffer for rows that are not contiguous.
  Gatherer(const std::vector<std::filesystem::path>& files, std::span<char> bounce)
      : files_(files), bounce_(bounce) {}

  /// Writes `box` of the tensor to `to`, row-major, with zeros outside `valid`.
  /// \pre the slices cover the intersection of `box` and `valid`, and none of the slices that it
  ///     needs is lost.
  Status gather(const std::vector<SourceSlice>& slices, const Box& valid, std::int64_t element,
                const Box& box, std::span<char> to);

  std::int64_t bytes_read() const { return bytes_read_; }

 private:
  Status copy(const SourceSlice& slice, std::int64_t element, const Box& part, const Box& box,
              std::span<char> to);

  OpenFiles files_;
  std::span<char> bounce_;
  std::int64_t bytes_read_ = 0;
};

}  // namespace foreshard::checkpoint::internal
