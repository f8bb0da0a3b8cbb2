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

/// The operation in the name of a program or file ("all_reduce_perf", "nccl-AllReduce"), as tables
/// call it; empty if the name has none.
std::string operation_in(std::string_view name);

/// Determines the operation: from the text, else from the user, else from the file's name.
/// \param told  the user's operation, or empty.
/// \param operation  in: the text's operation, or empty; out: the operation.
/// \return the fault if text and user contradict each other, or if none names an operation.
std::optional<std::string> fault_in_operation(std::string_view told, std::string_view file_name,
                                              std::string& operation);

/// The version of a code: "2.28.9" for 22809. Source: NCCL_VERSION_CODE of nccl.h (X * 10000 +
/// Y * 100 + Z from 2.9 on, X * 1000 + Y * 100 + Z before).
std::string version_of(std::int64_t code);

Result<NcclTestsRun> read_nccl_tests_json(std::string_view text, std::string_view name,
                                          std::string_view operation);

}  // namespace foreshard::calibrate::internal
