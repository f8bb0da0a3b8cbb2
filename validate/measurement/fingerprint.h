/// \file
/// Which Program a file belongs to. Guards against mix-ups, not against forgery.
#pragma once

#include <string>

#include "strategies/program/ir/program.h"

namespace foreshard::measure {

/// 64-bit FNV-1a of the Program's canonical JSON, as 16 hexadecimal digits.
/// Source: Fowler, Noll and Vo, "The FNV Non-Cryptographic Hash Algorithm" (IETF
/// draft-eastlake-fnv). \pre verify(program) finds nothing.
std::string fingerprint_of(const program::Program& program);

}  // namespace foreshard::measure
