/// \file
/// How many random cases a test of properties takes: CI needs an answer in minutes, `.ci/run
/// --all`, which sets FORESHARD_ALL_SEEDS, takes all of them.
#pragma once

#include <cstdlib>

namespace foreshard {

template <class Count>
Count seeds(Count usual, Count all) {
  return std::getenv("FORESHARD_ALL_SEEDS") == nullptr ? usual : all;
}

}  // namespace foreshard
