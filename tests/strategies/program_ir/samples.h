/// \file
/// Programs for the tests of strategies/program/ir.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "strategies/program/ir/program.h"

namespace foreshard::program {

/// A pipeline of `stages` x tensor 2 x data 2, 1F1B over `micro_batches`, `layers` layers per
/// stage: transfers on streams of their own, a buffer per layer and micro-batch, gradients at the
/// end. Meets all invariants.
Program pipeline_program(int stages, int micro_batches, int layers);

/// One rank, a few streams, random blocks and calls of every kind of task but transfers. Meets
/// invariants 1 to 14 (buffers do not balance).
Program random_one_rank_program(std::mt19937& random);

/// Any Program whose numbers are finite and whose names are UTF-8, mostly meaningless.
Program random_program(std::mt19937& random);

}  // namespace foreshard::program
