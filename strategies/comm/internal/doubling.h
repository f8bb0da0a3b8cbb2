/// \file
/// All-gathers in log2 p rounds, for any number of members. Run backwards they are reduce-scatters.
#pragma once

#include "strategies/comm/internal/rounds.h"

namespace foreshard::comm::internal {

/// Near members first: in round r every member has 2^r chunks and passes them to a member 2^r
/// places away. With 2^k members the two exchange their chunks (recursive doubling); else a member
/// sends to the one 2^r places before it and receives from the one 2^r places after it, modulo the
/// members (Bruck).
/// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
/// MPICH", IJHPCA 19(1), 2005, section 4.1.
Rounds near_first_all_gather(std::int32_t members);

/// Far members first: every chunk goes down a binomial tree of its own; all that the trees send
/// between two members in one round is one message. The last round, to the neighbour, moves most of
/// the bytes.
/// Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
/// 2025, arXiv:2506.20252.
Rounds far_first_all_gather(std::int32_t members);

}  // namespace foreshard::comm::internal
