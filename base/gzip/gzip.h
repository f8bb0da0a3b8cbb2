/// \file
/// Texts that gzip compressed (RFC 1952), as profilers write their traces.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace foreshard {

/// Whether `bytes` begin as those of a gzip file do.
bool is_gzip(std::string_view bytes);

/// What `bytes`, one or several gzip members one after another, hold.
/// \param name  stands for the file in messages.
/// \return kInvalidInput with "name:" where the bytes are no gzip file, end too early, are damaged,
///     or hold more than `largest`.
Result<std::string> gunzip(std::string_view bytes, std::string_view name, Bytes largest);

}  // namespace foreshard
