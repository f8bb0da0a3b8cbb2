#include "strategies/checkpoint/internal/gather.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.h"

namespace foreshard::checkpoint::internal {
namespace {

// Up to this gap in bytes, two rows are read in one read, together with the gap between them.
constexpr std::int64_t kReadOver = 8192;

std::int64_t extent(const Box& box, std::size_t dim) {
  return box.end[dim] - box.begin[dim];
}

// Per dimension: bytes from one index to the next in a row-major array that holds `box`.
std::vector<std::int64_t> strides_of(const Box& box, std::int64_t element) {
  std::vector<std::int64_t> strides(box.begin.size());
  std::int64_t stride = element;
  for (std::size_t d = strides.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= extent(box, d);
  }
  return strides;
}

// Visits the offsets of all indices of `part` along dimensions [first, last) in two arrays.
template <class Visit>
Status for_each_row(const Box& part, std::size_t first, std::size_t last,
                    const std::vector<std::int64_t>& from_strides, std::int64_t from,
                    const std::vector<std::int64_t>& to_strides, std::int64_t to,
                    const Visit& visit) {
  std::vector<std::int64_t> index(last - first, 0);
  for (;;) {
    FORESHARD_TRY(visit(from, to));
    std::size_t d = last;
    for (; d > first; --d) {
      std::int64_t& i = index[d - 1 - first];
      from += from_strides[d - 1];
      to += to_strides[d - 1];
      if (++i < extent(part, d - 1)) break;
      from -= i * from_strides[d - 1];
      to -= i * to_strides[d - 1];
      i = 0;
    }
    if (d == first) return {};
  }
}

}  // namespace

std::vector<SourceSlice> distinct_slices(const SourceTensor& tensor) {
  const TensorEntry& entry = tensor.entry;
  std::map<Box, SourceSlice> slices;
  for (std::size_t p = 0; p < tensor.locations.size(); ++p) {
    Box box = slice_of(entry.layout, entry.shape, static_cast<std::int64_t>(p));
    if (box.empty() && !box.begin.empty()) continue;
    SourceSlice& slice = slices[box];
    const std::int32_t rank = entry.layout.mesh.ranks[p];
    const bool is_lost = tensor.locations[p].file < 0;
    const bool has_one = slice.location.file >= 0;
    if (!is_lost && (!has_one || rank < slice.rank)) slice.location = tensor.locations[p];
    if (!has_one || (!is_lost && rank < slice.rank)) slice.rank = rank;
    slice.box = std::move(box);
  }
  std::vector<SourceSlice> list;
  list.reserve(slices.size());
  for (auto& [box, slice] : slices) list.push_back(std::move(slice));
  return list;
}

void for_each_part(const Box& box, std::int64_t element, std::int64_t most,
                   const std::function<void(const Box&)>& visit) {
  FORESHARD_CHECK(element <= most);
  std::size_t whole = box.begin.size();  // dimensions from here on fit whole
  std::int64_t inner = element;
  for (; whole > 0; --whole) {
    const std::int64_t n = extent(box, whole - 1);
    if (n <= 0) return;
    if (inner > most / n) break;
    inner *= n;
  }
  if (whole == 0) return visit(box);
  const std::size_t cut = whole - 1;
  for (std::size_t d = 0; d < cut; ++d)
    if (extent(box, d) <= 0) return;
  const std::int64_t step = std::max<std::int64_t>(1, most / inner);
  Box part = box;
  for (std::size_t d = 0; d < cut; ++d) part.end[d] = part.begin[d] + 1;
  for (;;) {
    for (part.begin[cut] = box.begin[cut]; part.begin[cut] < box.end[cut];
         part.begin[cut] = part.end[cut]) {
      part.end[cut] = std::min(part.begin[cut] + step, box.end[cut]);
      visit(part);
    }
    std::size_t d = cut;
    for (; d > 0; --d) {
      ++part.begin[d - 1];
      if (part.end[d - 1]++ < box.end[d - 1]) break;
      part.begin[d - 1] = box.begin[d - 1];
      part.end[d - 1] = part.begin[d - 1] + 1;
    }
    if (d == 0) return;
  }
}

Status Gatherer::gather(const std::vector<SourceSlice>& slices, const Box& valid,
                        std::int64_t element, const Box& box, std::span<char> to) {
  const Box wanted = intersection(valid, box);
  if (wanted != box) std::ranges::fill(to, '\0');
  std::int64_t covered = 0;
  for (const SourceSlice& slice : slices) {
    const Box part = intersection(slice.box, wanted);
    if (part.elements() == 0) continue;
    FORESHARD_CHECK(slice.location.file >= 0);
    FORESHARD_TRY(copy(slice, element, part, box, to));
    covered += part.elements();
  }
  FORESHARD_CHECK(covered == wanted.elements());
  return {};
}

Status Gatherer::copy(const SourceSlice& slice, std::int64_t element, const Box& part,
                      const Box& box, std::span<char> to) {
  FORESHARD_ASSIGN(const auto file, files_.at(slice.location.file));
  const auto from_strides = strides_of(slice.box, element);
  const auto to_strides = strides_of(box, element);
  std::int64_t from_begin = slice.location.offset;
  std::int64_t to_begin = 0;
  for (std::size_t d = 0; d < part.begin.size(); ++d) {
    from_begin += (part.begin[d] - slice.box.begin[d]) * from_strides[d];
    to_begin += (part.begin[d] - box.begin[d]) * to_strides[d];
  }

  // Rows: parts that are contiguous in both arrays.
  std::size_t row = part.begin.size();
  std::int64_t run = element;
  while (row > 0) {
    --row;
    run *= extent(part, row);
    if (extent(part, row) != extent(slice.box, row) || extent(part, row) != extent(box, row)) break;
  }
  // Spans: rows with gaps in the file that are small enough to read them too.
  std::size_t window = row;
  std::int64_t span = run;
  while (window > 0 && from_strides[window - 1] - span <= kReadOver) {
    --window;
    span += (extent(part, window) - 1) * from_strides[window];
  }

  const auto read = [&](std::int64_t offset, std::span<char> piece) {
    bytes_read_ += static_cast<std::int64_t>(piece.size());
    return file->read(offset, piece);
  };
  const auto target = [&](std::int64_t offset, std::int64_t bytes) {
    return to.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
  };
  const auto bounce = static_cast<std::int64_t>(bounce_.size());
  return for_each_row(
      part, 0, window, from_strides, from_begin, to_strides, to_begin,
      [&](std::int64_t from, std::int64_t into) -> Status {
        if (span == run || run > bounce)
          return for_each_row(
              part, window, row, from_strides, from, to_strides, into,
              [&](std::int64_t f, std::int64_t t) { return read(f, target(t, run)); });
        const std::int64_t span_end = from + span;
        std::int64_t have_begin = 0;  // range of the file that `bounce_` holds
        std::int64_t have_end = 0;
        return for_each_row(part, window, row, from_strides, from, to_strides, into,
                            [&](std::int64_t f, std::int64_t t) -> Status {
                              if (f + run > have_end) {
                                have_begin = f;
                                have_end = std::min(f + bounce, span_end);
                                const auto piece =
                                    bounce_.first(static_cast<std::size_t>(have_end - have_begin));
                                FORESHARD_TRY(read(have_begin, piece));
                              }
                              std::memcpy(target(t, run).data(), bounce_.data() + (f - have_begin),
                                          static_cast<std::size_t>(run));
                              return {};
                            });
      });
}

}  // namespace foreshard::checkpoint::internal
