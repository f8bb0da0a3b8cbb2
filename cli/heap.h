/// \file
/// Configures the C library's heap.
#pragma once

namespace foreshard::cli {

/// Asks the system to back the heap with large pages, and keeps freed memory for later allocations.
/// A simulation writes tens of megabytes once and reads them a few times: with small pages, half of
/// its time can go into page faults. This is a hint: it has no effect if the C library or the
/// system does not support it.
void use_large_pages();

}  // namespace foreshard::cli
