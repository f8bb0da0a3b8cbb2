/// \file
/// Texts that gzip compressed (RFC 1952): read as profilers write their traces, and written.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace foreshard {

/// Whether `bytes` begin like a gzip file.
bool is_gzip(std::string_view bytes);

/// The decompressed content of `bytes`, which are one or several gzip members one after another.
/// \param name  stands for the file in messages.
/// \return kInvalidInput with "name:" where the bytes are no gzip file, end too early, are damaged,
///     or hold more than `largest` or than limits::kRatio for each of theirs.
Result<std::string> gunzip(std::string_view bytes, std::string_view name, Bytes largest);

/// `text` as one gzip member without a name or a time: the same text gives the same bytes.
std::string gzip(std::string_view text);

}  // namespace foreshard
