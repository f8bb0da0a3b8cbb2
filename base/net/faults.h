/// \file
/// Errors of processes that work together, by whose fault they are.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace foreshard::net {

/// What the user asked for cannot be done.
inline Error bad(std::string what) {
  return {Error::Code::kInvalidInput, std::move(what)};
}
/// A file or a connection failed.
inline Error io(std::string what) {
  return {Error::Code::kIo, std::move(what)};
}

}  // namespace foreshard::net
