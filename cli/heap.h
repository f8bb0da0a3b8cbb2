/// \file
/// Where the program's memory comes from.
#pragma once

namespace foreshard::cli {

/// Asks the system for large pages under the heap, and keeps what is freed for the next that asks.
/// A simulation writes tens of megabytes once and reads them a few times: with small pages, half of
/// its time can go into faulting them in. A hint: where the C library or the system do not know
/// how, nothing changes.
void use_large_pages();

}  // namespace foreshard::cli
