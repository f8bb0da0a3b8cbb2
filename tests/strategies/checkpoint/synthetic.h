/// \file
/// Checkpoints whose every element can be recognised, for tests and benchmarks of conversions. The
/// element at row-major index i of a tensor is
///
///     the low bytes of mix(mix(seed + digest(name)) + i)      mix: the finaliser of SplitMix64
///
/// and zero where the tensor is only padded. Source of the finaliser: Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"

#include "strategies/checkpoint/source.h"

namespace foreshard::checkpoint {

/// Writes a checkpoint of `tensors` to `directory`, which must not exist.
/// \return kInvalidInput if a tensor has a fault; kIo.
Status write_synthetic(const std::filesystem::path& directory, FileFormat format,
                       const std::vector<TensorEntry>& tensors, std::uint64_t seed);

/// Reads all slices of all ranks.
/// \return kInvalidInput naming the first element that is not what
///     write_synthetic with `seed` would have written; kIo.
Status check_synthetic(const Source& source, std::uint64_t seed);

}  // namespace foreshard::checkpoint
