#include "base/yaml/internal/diagnostics.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace foreshard::yaml::internal {

std::string render(const Diagnostic& diagnostic, const Sources& sources, std::size_t width) {
  std::string text = sources.place(diagnostic.mark) + ": error: " + diagnostic.message;
  const std::string excerpt = sources.excerpt(diagnostic.mark, width);
  if (!excerpt.empty()) text += "\n" + excerpt;
  if (!diagnostic.help.empty()) {
    text += "\n     help: ";
    for (const char c : diagnostic.help) {
      text += c;
      if (c == '\n') text += "           ";
    }
  }
  for (auto from = diagnostic.via.rbegin(); from != diagnostic.via.rend(); ++from)
    text += "\n     referred to at " + sources.place(*from);
  return text;
}

void Diagnostics::add(const Mark& mark, std::string message, std::string help) {
  if (!seen_.emplace(mark, message).second) return;
  list_.push_back({mark, std::move(message), std::move(help), via_});
}

Error Diagnostics::error(const Sources& sources, std::size_t most, std::size_t width) const {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, list_.size()); ++i) {
    if (i > 0) text += '\n';
    text += render(list_[i], sources, width);
  }
  if (list_.size() > most) text += fmt::format("\n... and {} more errors", list_.size() - most);
  return Error{Error::Code::kInvalidInput, std::move(text)};
}

}  // namespace foreshard::yaml::internal
