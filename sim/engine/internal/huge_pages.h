/// \file
/// Large arrays on large pages. A run visits activities in order of time, which jumps through
/// arrays of tens of megabytes; with small pages most of the time goes into address translation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <vector>

namespace foreshard::engine::internal {

/// Reserves `size` elements and asks for large pages under them: a hint, the vector works as usual.
template <class T>
void reserve_on_huge_pages(std::vector<T>& v, std::size_t size) {
  if (size <= v.capacity()) return;
  v.reserve(size);
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  const auto address = reinterpret_cast<std::uintptr_t>(v.data());
  const std::uintptr_t begin = (address + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (address + size * sizeof(T)) / kHugePage * kHugePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace foreshard::engine::internal
