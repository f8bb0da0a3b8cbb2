/// \file
/// Identifies the Program that a file belongs to. It guards against mix-ups, not against forgery.
#pragma once

#include <string>

#include "strategies/program/ir/program.h"

namespace foreshard::measure {

/// 64-bit FNV-1a of the Program's canonical JSON, as 16 hexadecimal digits. `launch_time` counts
/// as 0: it is a forecast of the host and does not change the work, so a Program predicted on a
/// calibrated cluster has the same fingerprint as the one that was measured.
/// Source: Fowler, Noll and Vo, "The FNV Non-Cryptographic Hash Algorithm" (IETF
/// draft-eastlake-fnv).
/// \pre verify(program) finds nothing.
std::string fingerprint_of(const program::Program& program);

}  // namespace foreshard::measure
