// Writes a strategy as another framework's file (launch.h, export_launch), for `foreshard export
// --as`. A key that the format cannot express is refused, with the reason where one is known.
#include <algorithm>
#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "base/yaml/describe.h"
#include "base/yaml/leaves.h"

#include "strategies/launch/abilities.h"
#include "strategies/launch/internal/formats.h"

namespace foreshard::launch {
namespace internal {
namespace {

void add_leaves(Draft& draft, std::string_view prefix, const std::string& echo) {
  const auto leaves = yaml::leaves(echo, "echo");
  FORESHARD_CHECK(leaves.has_value());
  for (const yaml::Leaf& leaf : *leaves)
    draft.set(std::string(prefix) + leaf.path, Value{.words = leaf.words, .list = leaf.list});
}

// All keys of the strategy and, if it is given, of the model.
Draft draft_of(const Strategy& strategy, const Model* model) {
  Draft draft;
  add_leaves(draft, "strategy.", yaml::echo(strategy));
  if (model != nullptr) add_leaves(draft, "model.", yaml::echo(*model));
  return draft;
}

// The same of those that have every default.
const Draft& default_draft(bool has_model) {
  static const Model model;
  static const Draft with = draft_of(Strategy{}, &model);
  static const Draft without = draft_of(Strategy{}, nullptr);
  return has_model ? with : without;
}

// Moves keys that the format leaves to the program from the draft to `elsewhere`:
// "strategy.micro_batch" -> "micro_batch: 2 (per_device_train_batch_size)".
void leave_to_program(const Format& format, Draft& draft, std::vector<std::string>& elsewhere) {
  std::string_view rest = format.elsewhere;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    const std::size_t sign = rest.find('=');
    const std::string key(rest.substr(0, sign));
    if (draft.has(key)) {
      elsewhere.push_back(fmt::format("{}: {} ({})", key.substr(key.find('.') + 1), draft.word(key),
                                      rest.substr(sign + 1, end - sign - 1)));
      draft.drop(key);
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

// Errors for keys that are neither written nor have their default.
std::vector<std::string> unsaid(const Format& format, const Draft& draft, const Draft& defaults) {
  std::vector<std::string> faults;
  for (const auto& [key, value] : draft.values()) {
    const bool of_model = key.starts_with("model.");
    if (key.starts_with("note.")) {
      if (!value.from.empty())
        faults.push_back(fmt::format("error: {}: {} has no word for it", value.from, format.name));
      continue;
    }
    if (key.starts_with("strategy.framework.") ||
        (of_model && (!format.has_model || key == "model.name" || key == "model.source")))
      continue;
    const bool is_default = defaults.has(key) && defaults.at(key).words == value.words;
    if (is_default && value.forbidden.empty()) continue;
    faults.push_back(fmt::format("error: {}: {} cannot say '{}'{}", key, format.name,
                                 join(value.words, ", "),
                                 value.forbidden.empty() ? "" : ": " + value.forbidden));
  }
  return faults;
}

}  // namespace
}  // namespace internal

Result<Exported> export_launch(std::string_view name, const Strategy& strategy,
                               const Model* model) {
  using internal::Format;
  const auto all = internal::all_formats();
  const auto found =
      std::ranges::find_if(all, [&](const Format* each) { return each->name == name; });
  if (found == all.end()) {
    std::vector<std::string> names;
    for (const Format* each : all) names.emplace_back(each->name);
    return Error{Error::Code::kInvalidInput,
                 fmt::format("there is no format '{}': choose {}", name, quoted_choice(names))};
  }
  const Format& format = **found;
  const bool has_model = format.has_model && model != nullptr;
  internal::Draft draft = internal::draft_of(strategy, has_model ? model : nullptr);
  const internal::Draft& defaults = internal::default_draft(has_model);
  if (has_usual_order(strategy)) draft.drop("strategy.rank_order");
  Exported exported;
  exported.suffix = format.suffix;
  exported.has_model = has_model;
  format.spread(draft, {strategy, model});
  internal::leave_to_program(format, draft, exported.elsewhere);
  const auto settings = internal::put(format, draft, defaults);
  const auto faults = internal::unsaid(format, draft, defaults);
  if (!faults.empty()) return Error{Error::Code::kUnsupported, join(faults, "\n")};
  exported.text = format.print(settings);
  return exported;
}

}  // namespace foreshard::launch
