#include "cli/suggestions.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/limits.h"
#include "base/other_names.h"
#include "base/text.h"
#include "cli/kinds.h"

#include "strategies/graph/hf_config.h"

namespace foreshard::cli {
namespace {

constexpr std::array<std::string_view, 7> kDeviceCounts{
    "gpus", "num_gpus", "n_gpus", "ngpus", "world_size", "devices", "num_devices"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kUsualOptions{{
    {"-v", "--version"},
    {"-V", "--version"},
    {"--json", "--format json"},
    {"--csv", "--format csv"},
    {"--out", "--output"},
    {"--config", "--configs"},
}};

// The key of an option: "--global-batch=64" -> "global_batch".
std::string key_of(std::string_view option) {
  std::string key(option.substr(std::min(option.find_first_not_of('-'), option.size())));
  key.resize(std::min(key.find('='), key.size()));
  std::ranges::replace(key, '-', '_');
  return key;
}

std::optional<std::string> text_if_readable(const std::string& path) {
  std::error_code status;
  if (!std::filesystem::is_regular_file(path, status)) return std::nullopt;
  const auto text = read_file(path, limits::kConfig);
  return text ? std::optional(*text) : std::nullopt;
}

// Name of the result that the text is, such as "prediction"; empty if it is no result.
std::string result_of(std::string_view text) {
  constexpr std::string_view kBegin = "\"foreshard.";
  constexpr std::size_t kHead = 200;
  const auto head = text.substr(0, kHead);
  const auto begin = head.find(kBegin);
  const auto end = begin == head.npos ? head.npos : head.find('/', begin);
  if (end == head.npos || head.substr(0, begin).find("\"schema\"") == head.npos) return {};
  return std::string(head.substr(begin + kBegin.size(), end - begin - kBegin.size()));
}

// The option that takes the file, such as "model"; "" if the file is or may be a study.
std::string part_of(const std::string& path, const std::string& text) {
  if (path.ends_with(".onnx") || looks_like_hf_config(text)) return "model";
  const std::string_view kind = kind_of(path, text).name;
  for (const std::string_view part : {"cluster", "model", "strategy", "communication"})
    if (kind == part) return std::string(part);
  return "";
}

std::string use_of_result(const std::string& result, const std::string& path) {
  if (result == "program") return fmt::format("foreshard replay {} runs it", path);
  if (result == "measurement") return fmt::format("foreshard compare STUDY.yaml {}", path);
  return "give the study that it was made from";
}

// The error for a directory in place of a study; names a study in it, if there is one.
Error folder_for_study(const std::string& folder) {
  std::error_code status;
  std::vector<std::string> studies;
  constexpr int kMost = 200;  // files that are read for a remedy
  int looked_at = 0;
  auto entry = std::filesystem::directory_iterator(folder, status);
  for (; !status && entry != std::filesystem::directory_iterator() && looked_at < kMost;
       entry.increment(status)) {
    if (entry->path().extension() != ".yaml") continue;
    ++looked_at;
    const auto text = text_if_readable(entry->path().string());
    if (text && kind_of(entry->path(), *text).name == "study")
      studies.push_back(entry->path().string());
  }
  std::ranges::sort(studies);
  return {Error::Code::kInvalidInput,
          fmt::format("{} is a directory, not a study\n   help: {}", folder,
                      studies.empty() ? "give the file: STUDY.yaml"
                                      : "studies in it: " + quoted_choice(studies, 10))};
}

// The key of a part of a study that is called `key`, else the one that has this name elsewhere.
std::optional<std::string> path_of(const std::string& key) {
  constexpr std::array<std::string_view, 3> kParts{"strategy", "model", "cluster"};
  const auto path = [](std::string_view part, const std::string& own) {
    return std::optional(fmt::format("{}.{}", part, own));
  };
  for (const std::string_view part : kParts) {
    const auto keys = find_kind(part)->keys();
    if (std::ranges::find(keys, key) != keys.end()) return path(part, key);
  }
  for (const std::string_view part : kParts)
    if (const auto own = named_elsewhere(key, find_kind(part)->keys())) return path(part, *own);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> suggest_setting(std::string_view option, std::string_view value) {
  const auto equals = option.find('=');
  std::string given(value);
  if (equals != std::string::npos) {
    given = option.substr(equals + 1);
  } else if (value.empty() || value.starts_with("-")) {
    given = "true";
  }
  const auto path = path_of(key_of(option));
  if (!path) return std::nullopt;
  return fmt::format("--set {}={}", *path, given);
}

std::optional<std::string> suggest_option(std::string_view option) {
  const auto found =
      std::ranges::find(kUsualOptions, option, &decltype(kUsualOptions)::value_type::first);
  return found == kUsualOptions.end() ? std::nullopt : std::optional(std::string(found->second));
}

std::optional<std::string> suggest_path(std::string_view path) {
  const auto studies = find_kind("study")->keys();
  const auto dot = path.find('.');
  const std::string part(path.substr(0, dot));
  if (dot == path.npos) {
    if (std::ranges::find(studies, part) != studies.end()) return std::nullopt;
    return path_of(part);
  }
  const FileKind* kind = find_kind(part);
  if (kind == nullptr) return std::nullopt;
  const std::string key(path.substr(dot + 1));
  if (key.find('.') != key.npos) return std::nullopt;
  const auto keys = kind->keys();
  if (std::ranges::find(keys, key) != keys.end()) return std::nullopt;
  if (const auto own = named_elsewhere(key, keys)) return fmt::format("{}.{}", part, *own);
  return path_of(key);
}

std::optional<std::string> suggest_devices(std::string_view option, std::string_view value) {
  if (std::ranges::find(kDeviceCounts, key_of(option)) == kDeviceCounts.end()) return std::nullopt;
  const auto equals = option.find('=');
  const std::string_view count = equals == option.npos ? value : option.substr(equals + 1);
  return fmt::format(
      "the cluster says how many devices there are: --set cluster.nodes=N, where N nodes have {}; "
      "and the strategy how many are used, for example --set strategy.data_parallel=...",
      count.empty() || count.starts_with('-') ? "as many as you want" : std::string(count));
}

std::optional<std::string> suggest_command(const std::string& file) {
  const auto text = text_if_readable(file);
  if (!text) return std::nullopt;
  if (const std::string result = result_of(*text); !result.empty())
    return result == "program" ? std::optional("foreshard replay " + file) : std::nullopt;
  const bool study = part_of(file, *text).empty() && kind_of(file, *text).name == "study";
  return fmt::format("foreshard {} {}", study ? "simulate" : "check", file);
}

std::optional<std::string> suggest_argument(std::string_view command, const std::string& word) {
  if (command == "catalog") return "foreshard catalog show " + word;
  if (command == "reshard")
    return "foreshard reshard --from-strategy BEFORE --to-strategy AFTER --model MODEL --cluster "
           "CLUSTER";
  return std::nullopt;
}

Status check_may_be_study(const std::string& path) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) return folder_for_study(path);
  if (const std::string whole = path + ".yaml"; std::filesystem::path(path).has_parent_path() &&
                                                !std::filesystem::exists(path, status) &&
                                                std::filesystem::is_regular_file(whole, status))
    return Error{Error::Code::kInvalidInput,
                 fmt::format("there is no file '{}'\n   help: did you mean '{}'?", path, whole)};
  const auto text = text_if_readable(path);
  if (!text) return {};
  if (const std::string result = result_of(*text); !result.empty())
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{} is no study but a result (foreshard.{})\n   help: {}", path,
                             result, use_of_result(result, path))};
  const std::string part = part_of(path, *text);
  if (part.empty()) return {};
  std::vector<std::string> others;
  for (const std::string_view one : {"cluster", "model", "strategy"})
    if (one != part) others.push_back(fmt::format("--{}", one));
  return Error{Error::Code::kInvalidInput,
               fmt::format("{} is no study but a {} file\n   help: give it as --{} {}, beside {} "
                           "(foreshard catalog lists some)",
                           path, part, part, path, join(others, " and "))};
}

}  // namespace foreshard::cli
