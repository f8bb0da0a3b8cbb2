#include <cstdint>
#include <cstdlib>
#include <exception>

#include "base/threads.h"
#include "cli/commands.h"

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#endif

namespace foreshard::cli {

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// Asks the system to back the heap with large pages, and keeps freed memory for later allocations.
// A simulation writes tens of megabytes once and reads them a few times: with small pages, half of
// its time can go into page faults. This is a hint: it has no effect if the C library or the
// system does not support it. The heap grows to its full size once, is marked for large pages, and
// is emptied again: this reserves only addresses; the system provides memory when pages are
// written later.
void use_large_pages() {
  constexpr int kHeap = 1 << 30;
  constexpr int kLargestOnHeap = 1 << 25;  // the largest value that the library accepts
  constexpr int kMostBeside = 1 << 16;     // the library's default
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

// The handler for exceptions that no command answers with a message of its own.
[[noreturn]] void end() {
  end_unanswered({});
}

}  // namespace foreshard::cli

int main(int argc, char** argv) {
  std::set_terminate(foreshard::cli::end);
  try {
    foreshard::cli::use_large_pages();
    return foreshard::cli::run(argc, argv);
  } catch (...) {
    foreshard::cli::end();
  }
}
