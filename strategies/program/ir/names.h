/// \file
/// The names of the Program's enumerators, as its JSON and reports write them.
#pragma once

#include <optional>
#include <string_view>

#include "strategies/program/ir/program.h"

namespace foreshard::program {

std::string_view name_of(Purpose purpose);      ///< "tensor", "context", "expert", ...
std::string_view name_of(CollectiveKind kind);  ///< "all_reduce", "send", ...
std::string_view name_of(MemoryKind kind);      ///< "parameters", "gradients", ...

/// The same for people: "transfer" for both ends of one.
std::string_view name_of_operation(CollectiveKind kind);

/// \return nothing if no enumerator has that name.
std::optional<Purpose> find_purpose(std::string_view name);
std::optional<CollectiveKind> find_collective(std::string_view name);
std::optional<MemoryKind> find_memory_kind(std::string_view name);

}  // namespace foreshard::program
