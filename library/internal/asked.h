/// \file
/// A command that the library runs, for the functions of foreshard/foreshard.h.
#pragma once

#include <optional>

#include "cli/commands.h"
#include "library/foreshard/foreshard.h"

namespace foreshard {
inline namespace v0 {
namespace library {

struct Ran {
  Answer answer;
  std::optional<Failure::Kind> fault;  ///< Kind of the last fault in the messages.
};
Ran ran(const Words& words, const Hooks& hooks, const cli::CatalogueFolder& catalogue);

/// \throws Failure, InternalError, Cancelled
Answer asked(const Words& words, const Hooks& hooks, const cli::CatalogueFolder& catalogue);

inline cli::CatalogueFolder catalogue_of(const auto& question, const char* package) {
  return {.given = question.catalogue, .by = "catalogue", .last = package};
}

}  // namespace library
}  // namespace v0
}  // namespace foreshard
