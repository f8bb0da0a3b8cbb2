#include "cli/heap.h"

#include <cstdint>
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#endif

namespace foreshard::cli {

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// The heap grows to its full size once, is marked as one for large pages, and is empty again. This
// reserves addresses; the system gives memory only for what is written later.
void use_large_pages() {
  constexpr int kHeap = 1 << 30;
  constexpr int kLargestOnHeap = 1 << 25;  // the most that the library takes
  constexpr int kMostBeside = 1 << 16;     // its default
  constexpr std::uintptr_t kLargePage = std::uintptr_t{1} << 21;
  mallopt(M_MMAP_THRESHOLD, kLargestOnHeap);
  mallopt(M_TRIM_THRESHOLD, kHeap);
  mallopt(M_MMAP_MAX, 0);
  void* heap = std::malloc(kHeap - kLargePage);
  mallopt(M_MMAP_MAX, kMostBeside);
  if (heap == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(heap) + kLargePage;
  void* first = reinterpret_cast<void*>(begin / kLargePage * kLargePage);
  madvise(first, kHeap - 2 * kLargePage, MADV_HUGEPAGE);
  std::free(heap);
}

#else

void use_large_pages() {}

#endif

}  // namespace foreshard::cli
