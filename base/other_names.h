/// \file
/// What keys are called elsewhere: abbreviations, and the names that other programs have for them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard {

/// The candidate that `word` is another name of ("vpp" for "virtual_stages"), else the
/// longest that it abbreviates ("tp" for "tensor_parallel", "mbs" for "micro_batch") or contains
/// word by word ("tensor_model_parallel_size"), ignoring case.
/// \return nothing if there is none. Spelling mistakes are the business of nearest_name().
std::optional<std::string> named_elsewhere(std::string_view word,
                                           const std::vector<std::string>& candidates);

}  // namespace foreshard
