/// \file
/// The JSON form of nccl-tests (-J), and the names that both forms use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

#include "validate/calibrate/nccl_tests.h"

namespace foreshard::calibrate::internal {

/// The operation that a name of a program or file speaks of ("all_reduce_perf", "nccl-AllReduce"),
/// as tables call it; empty if none.
std::string operation_in(std::string_view name);

/// The operation by the text, else what the user told, else by the file's name.
/// \return the fault if text and user contradict each other, or if none names one.
std::optional<std::string> fault_in_operation(std::string_view told, std::string_view file_name,
                                              std::string& operation);

/// "2.28.9" of 22809. Source: NCCL_VERSION_CODE of nccl.h (X * 10000 + Y * 100 + Z from 2.9 on,
/// X * 1000 + Y * 100 + Z before).
std::string version_of(std::int64_t code);

Result<NcclTestsRun> read_nccl_tests_json(std::string_view text, std::string_view name,
                                          std::string_view operation);

}  // namespace foreshard::calibrate::internal
