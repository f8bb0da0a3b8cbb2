/// \file
/// `Loader` reads YAML files into types that have a `Table`, strictly: what the table does not list
/// is an error, and all errors of a file are reported in one run.
///
///     yaml::Loader loader({.catalogue = {"configs"}, .overrides = {{"nodes", "4"}}});
///     Result<Cluster> cluster = loader.read_file<Cluster>("cluster.yaml");
///
///     cluster.yaml:3:1: error: unknown key 'ndoes' in cluster
///        3 | ndoes: 64
///          | ^^^^^
///        help: did you mean 'nodes'?
///
/// `extends: <ref>` at the top of a file, or of a mapping whose type has a catalogue folder, puts
/// the mapping over the one referred to, key by key. Anchors and aliases work; `<<`, tags, several
/// documents in a file, and duplicate keys are refused. Size, depth and alias expansion are capped.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "base/units.h"
#include "base/yaml/table.h"

namespace foreshard::yaml {

/// `--set path=value`. The path goes through keys and list positions: `cluster.nodes`, `levels.0`.
struct Override {
  std::string path;
  std::string value;  ///< YAML: a scalar or a flow collection.
};

struct Options {
  std::vector<std::filesystem::path> catalogue{};  ///< Searched in this order.
  std::vector<Override> overrides{};               ///< A later one wins.
  std::size_t most_values = limits::kYamlValues;
  std::size_t most_errors = 20;  ///< Errors reported at once.
  std::size_t width = 100;       ///< Source lines are clipped to it.
};

/// A file that took part in the result.
struct Input {
  std::string path;
  std::string bytes;
};

class Loader;
namespace internal {
Result<std::string> brief(const Type& type, const void* object, Loader& loader);
}

class Loader {
 public:
  explicit Loader(Options options = {});
  ~Loader();
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;

  /// The object in the file at `path`.
  /// \param at  where the object stands in the whole configuration: overrides and `place` use paths
  ///     that begin with it. Empty for the whole.
  /// \return kIo if `path` itself cannot be read; kInvalidInput with all faults otherwise.
  template <class T>
  Result<T> read_file(const std::filesystem::path& path, std::string_view at = {}) {
    const auto object = std::make_unique<T>();
    FORESHARD_TRY(read_file(path, at, type_of<T>(), object.get()));
    return std::move(*object);
  }

  /// The same from a text; `name` stands for the file in messages.
  template <class T>
  Result<T> read_text(std::string_view text, std::string_view name, std::string_view at = {}) {
    const auto object = std::make_unique<T>();
    FORESHARD_TRY(read_text(text, name, at, type_of<T>(), object.get()));
    return std::move(*object);
  }

  /// What a `Ref<T>` with this text would give: a catalogue name, or a path ending in `.yaml`.
  template <class T>
  Result<T> read_ref(std::string_view ref, std::string_view at = {}) {
    const auto object = std::make_unique<T>();
    FORESHARD_TRY(read_ref(ref, at, type_of<T>(), object.get()));
    return std::move(*object);
  }

  /// The names that a `Ref<T>` may have in the catalogue, sorted.
  template <class T>
  std::vector<std::string> names() const {
    return names(type_of<T>());
  }

  /// Every file that was read, once, in the order of reading.
  const std::vector<Input>& inputs() const;

  /// "file:line:column" of the value at `path` (`cluster.levels.0` or `cluster.levels[0]`), or of
  /// the nearest mapping around it that was written.
  std::string place(std::string_view path) const;

  /// An error with place, line and caret for checks that no single file can make.
  Error error_at(std::string_view path, std::string_view message, std::string_view help = {}) const;

 private:
  Status read_file(const std::filesystem::path& path, std::string_view at,
                   const internal::Type& type, void* object);
  Status read_text(std::string_view text, std::string_view name, std::string_view at,
                   const internal::Type& type, void* object);
  Status read_ref(std::string_view ref, std::string_view at, const internal::Type& type,
                  void* object);

  std::vector<std::string> names(const internal::Type& type) const;
  friend Result<std::string> internal::brief(const internal::Type&, const void*, Loader&);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foreshard::yaml
