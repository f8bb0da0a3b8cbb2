#include "cli/heap.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#endif

namespace foreshard::cli {

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// The heap grows to its full size once, is marked as one for large pages, and is empty again. This
// reserves addresses; the system gives memory only for what is written later. Where it refuses so
// many, half of them. Nothing is given back before the end: what one simulation frees, the next one
// writes again.
void use_large_pages() {
  constexpr std::size_t kHeap = std::size_t{1} << 33;
  constexpr std::size_t kSmallestHeap = std::size_t{1} << 30;
  constexpr std::uintptr_t kLargePage = std::uintptr_t{1} << 21;
  constexpr int kNever = -1;
  mallopt(M_TRIM_THRESHOLD, kNever);
  mallopt(M_MMAP_MAX, 0);
  for (std::size_t size = kHeap; size >= kSmallestHeap; size /= 2) {
    void* heap = std::malloc(size - kLargePage);
    if (heap == nullptr) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(heap) + kLargePage;
    void* first = reinterpret_cast<void*>(begin / kLargePage * kLargePage);
    madvise(first, size - 2 * kLargePage, MADV_HUGEPAGE);
    std::free(heap);
    return;
  }
}

#else

void use_large_pages() {}

#endif

}  // namespace foreshard::cli
