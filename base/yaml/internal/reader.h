/// \file
/// Walks a document along a `Type` and fills the object; loads what it refers to.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml/internal/diagnostics.h"
#include "base/yaml/internal/node.h"
#include "base/yaml/internal/sources.h"
#include "base/yaml/loader.h"
#include "base/yaml/type.h"

namespace foreshard::yaml::internal {

/// What a `Loader` keeps between reads.
struct Memory {
  Options options;
  Sources sources;
  std::vector<Input> inputs;
  std::map<std::string, Mark> places;  ///< Path (dots between the parts) -> place.
};

/// `levels[0].up` as `levels.0.up`.
std::string with_dots(std::string_view path);

/// One read: from a file, a text or a reference to an object.
class Reader {
 public:
  explicit Reader(Memory& memory);

  void file(const std::filesystem::path& path, const std::string& at, const Type& type,
            void* object);
  void text(std::string_view text, std::string_view name, const std::string& at, const Type& type,
            void* object);
  void ref(std::string_view ref, const std::string& at, const Type& type, void* object);

  /// After the read: nothing, or all that is wrong.
  Status error(const std::string& at);

 private:
  struct Target {
    std::string path;  ///< Path with dots between the parts.
    Mark mark;
    std::optional<Node> value;  ///< Nothing where the value is not YAML.
    bool used = false;
  };
  /// The place of a value and what messages call it.
  struct Where {
    std::string path;
    std::string key;
    bool top_of_file = false;
  };
  using Constraints = std::vector<Constraint>;

  void read(Node node, const Type& type, const Constraints& constraints, const Where& where,
            void* object);
  void read_optional(Node node, const Type& type, const Constraints& constraints,
                     const Where& where, void* object);
  void read_list(Node node, const Type& type, const Constraints& constraints, const Where& where,
                 void* object);
  void read_map(Node node, const Type& type, const Constraints& constraints, const Where& where,
                void* object);
  void read_sourced(Node node, const Type& type, const Constraints& constraints, const Where& where,
                    void* object);
  void read_ref(Node node, const Type& type, const Constraints& constraints, const Where& where,
                void* object);
  void read_words(const Node& node, const Type& type, const Where& where, void* object);
  void read_struct(Node node, const Type& type, const Where& where, void* object);

  void mismatch(const Node& node, const Type& type, const Where& where, std::string help = {});
  void unknown_key(const Entry& entry, const Fields& fields);
  void missing_keys(const Node& node, const Fields& fields,
                    const std::vector<const Field*>& missing);

  /// Puts the overrides below `path` into a collection, one level deep.
  void apply_overrides(Node& node, const std::string& path);
  /// The mapping on top of the mapping that it extends; nothing where that failed.
  std::optional<Node> extended(Node node, const Fields& fields);

  /// The file that `ref` means, where `ref` is written at `mark` for an object of `fields`.
  std::optional<std::filesystem::path> find(const std::string& ref, const Fields& fields,
                                            const Mark& mark);
  /// Names of the catalogue entries of that type. Entries of other types, whose folders lie inside
  /// this type's folder, are left out.
  std::vector<std::string> catalogue_names(const Fields& fields) const;
  /// The document in a file; one read opens it once, however often it is referred to.
  std::optional<Node> document(const std::filesystem::path& path, const Mark& mark);
  /// Notes that a file took part, with the bytes of its latest reading.
  void remember(Input input);
  /// Puts a file on the stack of those being read, unless it is there already: a cycle.
  bool enter(const std::filesystem::path& path, const Mark& mark);
  void leave();

  Memory& memory_;
  Diagnostics faults_;
  std::vector<Target> targets_;
  std::map<std::filesystem::path, Node> documents_;  // By canonical path.
  std::vector<std::filesystem::path> open_;          // Being read, outermost first.
  std::size_t values_ = 0;
  Status io_fault_;
};

}  // namespace foreshard::yaml::internal
