/// \file
/// Words that all outputs of a sweep's results share.
#pragma once

#include <string_view>

#include "sim/sweep/ranking.h"

namespace foreshard::sweep::internal {

constexpr std::string_view word_of(Work work) {
  switch (work) {
    case Work::kTraining:
      return "training";
    case Work::kToken:
      return "token";
    case Work::kSample:
      return "sample";
  }
  return "";
}

}  // namespace foreshard::sweep::internal
