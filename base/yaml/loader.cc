#include "base/yaml/loader.h"

#include <utility>

#include "base/limits.h"
#include "base/yaml/internal/diagnostics.h"
#include "base/yaml/internal/reader.h"

namespace foreshard::yaml {

struct Loader::State {
  internal::Memory memory;

  // Forgets the places of an earlier read of the same part: they would point into the wrong file.
  void forget_places(const std::string& at) {
    std::erase_if(memory.places, [&](const auto& place) {
      return at.empty() || place.first == at || place.first.starts_with(at + ".");
    });
  }

  // The mark of the value at `path`, or of the nearest value around it.
  const internal::Mark* mark_of(std::string path) const {
    for (;;) {
      const auto found = memory.places.find(path);
      if (found != memory.places.end()) return &found->second;
      if (path.empty()) return nullptr;
      const auto dot = path.rfind('.');
      path.resize(dot == std::string::npos ? 0 : dot);
    }
  }
};

Loader::Loader(Options options) : state_(std::make_unique<State>()) {
  options.most_values = limits::raised(options.most_values);
  state_->memory.options = std::move(options);
}
Loader::~Loader() = default;
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;

const std::vector<Input>& Loader::inputs() const {
  return state_->memory.inputs;
}

std::string Loader::place(std::string_view path) const {
  const internal::Mark* mark = state_->mark_of(internal::with_dots(path));
  return mark == nullptr ? std::string() : state_->memory.sources.place(*mark);
}

Error Loader::error_at(std::string_view path, std::string_view message,
                       std::string_view help) const {
  const internal::Mark* mark = state_->mark_of(internal::with_dots(path));
  std::string text = std::string(path) + ": error: " + std::string(message);
  if (mark != nullptr)
    text = internal::render({*mark, std::string(message), std::string(help)},
                            state_->memory.sources, state_->memory.options.width);
  else if (!help.empty())
    text += "\n     help: " + std::string(help);
  return {Error::Code::kInvalidInput, std::move(text)};
}

Status Loader::read_file(const std::filesystem::path& path, std::string_view at,
                         const internal::Type& type, void* object) {
  const std::string root = internal::with_dots(at);
  state_->forget_places(root);
  internal::Reader reader(state_->memory);
  reader.file(path, root, type, object);
  return reader.error(root);
}

Status Loader::read_text(std::string_view text, std::string_view name, std::string_view at,
                         const internal::Type& type, void* object) {
  const std::string root = internal::with_dots(at);
  state_->forget_places(root);
  internal::Reader reader(state_->memory);
  reader.text(text, name, root, type, object);
  return reader.error(root);
}

Status Loader::read_ref(std::string_view ref, std::string_view at, const internal::Type& type,
                        void* object) {
  const std::string root = internal::with_dots(at);
  state_->forget_places(root);
  internal::Reader reader(state_->memory);
  reader.ref(ref, root, type, object);
  return reader.error(root);
}

std::vector<std::string> Loader::names(const internal::Type& type) const {
  return internal::catalogue_names(state_->memory.options.catalogue, type.fields());
}

}  // namespace foreshard::yaml
