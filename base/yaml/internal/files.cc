// The part of the reader that finds and opens files: references, the catalogue and `extends`.
#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/yaml/internal/parse.h"
#include "base/yaml/internal/reader.h"
#include "base/yaml/internal/wording.h"

namespace foreshard::yaml::internal {
namespace {

namespace fs = std::filesystem;

bool is_yaml(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

fs::path identity_of(const fs::path& path) {
  std::error_code status;
  fs::path canonical = fs::weakly_canonical(path, status);
  return status ? path.lexically_normal() : canonical;
}

// The folders, inside this type's folder, of the types that its members refer to: devices/draw
// inside devices.
std::vector<std::string> folders_beside(const Fields& fields) {
  std::vector<std::string> folders;
  for (const Field& field : fields.fields) {
    const Type* type = &field.type();
    if (type->kind == Kind::kOptional) type = &type->element();
    if (type->kind != Kind::kRef || type->element().kind != Kind::kStruct) continue;
    const std::string& folder = type->element().fields().folder;
    if (folder.starts_with(fields.folder + "/")) folders.push_back(folder);
  }
  return folders;
}

// The names of the YAML files in `folder`, its subfolders included, without the suffix; sorted.
std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code status;
  for (auto entry = fs::recursive_directory_iterator(folder, status);
       !status && entry != fs::recursive_directory_iterator(); entry.increment(status))
    if (is_yaml(entry->path()))
      names.insert(
          fs::path(entry->path()).replace_extension().lexically_relative(folder).generic_string());
  return names;
}

// The names of the YAML files in the folder of `path`, without the suffix: some of them, where it
// has very many.
std::vector<std::string> names_beside(const fs::path& path) {
  constexpr int kMost = 1000;
  std::vector<std::string> names;
  std::error_code status;
  const fs::path folder = path.parent_path().empty() ? "." : path.parent_path();
  auto entry = fs::directory_iterator(folder, status);
  for (int i = 0; !status && i < kMost && entry != fs::directory_iterator();
       ++i, entry.increment(status))
    if (is_yaml(entry->path())) names.push_back(entry->path().stem().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace

void Reader::file(const fs::path& path, const std::string& at, const Type& type, void* object) {
  const auto bytes = read_file(path, limits::kConfig);
  if (!bytes) {
    io_fault_ = bytes.error();
    return;
  }
  open_.push_back(identity_of(path));
  if (auto root = document(path, {}))
    read(*std::move(root), type, {}, {at, at.empty() ? path.filename().string() : at, true},
         object);
  leave();
}

void Reader::text(std::string_view text, std::string_view name, const std::string& at,
                  const Type& type, void* object) {
  const int source =
      memory_.sources.add({.name = std::string(name), .file = {}, .text = std::string(text)});
  auto root = parse(memory_.sources, source, memory_.options.most_values, faults_);
  if (root)
    read(*std::move(root), type, {}, {at, at.empty() ? std::string(name) : at, true}, object);
}

void Reader::ref(std::string_view ref, const std::string& at, const Type& type, void* object) {
  // An override-like source: the reference was given on the command line, not in a file.
  const int source = memory_.sources.add(
      {.name = std::string(ref), .file = {}, .text = std::string(ref), .is_override = true});
  const Mark mark{.source = source};
  const auto path = find(std::string(ref), type.fields(), mark);
  if (!path) return;
  open_.push_back(identity_of(*path));
  if (auto root = document(*path, mark))
    read(*std::move(root), type, {}, {at, at.empty() ? std::string(ref) : at, true}, object);
  leave();
}

std::vector<std::string> catalogue_names(const std::vector<fs::path>& catalogue,
                                         const Fields& fields) {
  std::set<std::string> names;
  for (const fs::path& folder : catalogue) names.merge(names_in(folder / fields.folder));
  for (const std::string& other : folders_beside(fields)) {
    const std::string begin = other.substr(fields.folder.size() + 1) + "/";
    std::erase_if(names, [&](const std::string& name) { return name.starts_with(begin); });
  }
  return {names.begin(), names.end()};
}

std::optional<fs::path> Reader::find(const std::string& ref, const Fields& fields,
                                     const Mark& mark) {
  const std::string& folder = fields.folder;
  std::error_code status;
  const fs::path& referring = memory_.sources[mark.source].file;
  if (ref == "-" && referring.empty()) return fs::path(ref);  // stdin, named on the command line
  const fs::path path = (referring.parent_path() / ref).lexically_normal();
  if (is_yaml(ref)) {
    if (fs::is_regular_file(path, status)) return path;
    const auto near = nearest_name(path.stem().string(), names_beside(path));
    faults_.add(mark, "there is no file '" + path.string() + "'",
                near ? "did you mean '" + *near + ".yaml'?" : "");
    return std::nullopt;
  }
  const bool stays_inside = !ref.starts_with('/') && ref.find("..") == std::string::npos;
  for (const fs::path& catalogue : memory_.options.catalogue) {
    const fs::path entry = catalogue / folder / (ref + ".yaml");
    if (!folder.empty() && stays_inside && fs::is_regular_file(entry, status))
      return entry.lexically_normal();
  }
  if (fs::is_regular_file(path, status)) return path;
  if (folder.empty()) {
    faults_.add(mark, "there is no file '" + path.string() + "'", "write the path of a YAML file");
    return std::nullopt;
  }
  if (fs::path with_suffix = path; fs::is_regular_file(with_suffix += ".yaml", status)) {
    faults_.add(mark, "the catalogue has no '" + ref.substr(0, 60) + "' among its " + folder,
                "did you mean the file '" + with_suffix.string() + "'?");
    return std::nullopt;
  }
  const auto names = catalogue_names(memory_.options.catalogue, fields);
  const auto near = nearest_name(ref, names);
  std::string help = near ? "did you mean '" + *near + "'? " : "";
  help += names.empty() ? "the catalogue has no " + folder + "; write the path of a YAML file"
                        : "known: " + quoted_choice(names, 40);
  faults_.add(mark, "the catalogue has no '" + ref.substr(0, 60) + "' among its " + folder,
              std::move(help));
  return std::nullopt;
}

std::optional<Node> Reader::document(const fs::path& path, const Mark& mark) {
  const fs::path identity = identity_of(path);
  if (const auto known = documents_.find(identity); known != documents_.end()) return known->second;
  auto bytes = read_file(path, limits::kConfig);
  if (!bytes) {
    faults_.add(mark, bytes.error().message);
    return std::nullopt;
  }
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string text =
      bytes->starts_with(kByteOrderMark) ? bytes->substr(kByteOrderMark.size()) : *bytes;
  const std::string name = path == "-" ? "stdin" : path.string();
  remember({name, *std::move(bytes)});
  const int source = memory_.sources.add({.name = name, .file = path, .text = std::move(text)});
  const std::size_t faults_before = faults_.size();
  auto root = parse(memory_.sources, source, memory_.options.most_values, faults_);
  if (root && faults_.size() == faults_before) documents_.emplace(identity, *root);
  return root;
}

void Reader::remember(Input input) {
  const auto same = std::find_if(memory_.inputs.begin(), memory_.inputs.end(),
                                 [&](const Input& known) { return known.path == input.path; });
  if (same == memory_.inputs.end())
    memory_.inputs.push_back(std::move(input));
  else
    same->bytes = std::move(input.bytes);
}

bool Reader::enter(const fs::path& path, const Mark& mark) {
  const fs::path identity = identity_of(path);
  const auto open = std::find(open_.begin(), open_.end(), identity);
  if (open != open_.end()) {
    std::vector<std::string> circle;
    for (auto file = open; file != open_.end(); ++file) circle.push_back(file->filename().string());
    circle.push_back(identity.filename().string());
    faults_.add(mark, "files refer to each other in a circle: " + join(circle, " -> "));
    return false;
  }
  open_.push_back(identity);
  return true;
}

void Reader::leave() {
  open_.pop_back();
}

std::optional<Node> Reader::extended(Node node, const Fields& fields) {
  const auto entry = std::find_if(node.entries.begin(), node.entries.end(),
                                  [](const Entry& e) { return e.key == "extends"; });
  if (entry == node.entries.end()) return node;
  const Node ref = entry->value;
  node.entries.erase(entry);
  if (ref.shape != Node::Shape::kScalar) {
    faults_.add(ref.mark,
                "'extends' must be " +
                    std::string(fields.folder.empty() ? "" : "a name of the catalogue or ") +
                    "the path of a YAML file");
    return std::nullopt;
  }
  const auto path = find(ref.text, fields, ref.mark);
  if (!path || !enter(*path, ref.mark)) return std::nullopt;
  faults_.enter(ref.mark);
  auto base = document(*path, ref.mark);
  if (base && base->shape != Node::Shape::kMapping) {
    faults_.add(base->mark, "a file that is extended must hold a mapping");
    base.reset();
  }
  if (base) base = extended(*std::move(base), fields);
  faults_.leave();
  leave();
  if (!base) return std::nullopt;
  return overlay(*std::move(base), std::move(node));
}

}  // namespace foreshard::yaml::internal
