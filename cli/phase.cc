#include "cli/phase.h"

#include <filesystem>

#include "base/file.h"

#include "sim/study/study.h"
#include "strategies/graph/hf_config.h"

namespace foreshard::cli {

Result<Model> load_model(const std::string& name, yaml::Loader& loader, std::string_view at) {
  if (!name.ends_with(".json")) {
    auto model = load<Model>(name, loader, at);
    if (!model) return model;
    return checked(*std::move(model));
  }
  constexpr Bytes kLargest = 4_MiB;
  constexpr std::int64_t kSequence = 2048;  // of learned positions alone; config.json has its own
  const auto text = read_file(name, kLargest);
  if (!text) return text.error();
  const std::filesystem::path path = std::filesystem::absolute(name);
  auto model = read_hf_config(*text, path.parent_path().filename().string(), kSequence);
  if (!model) return Error{model.error().code, name + ": " + model.error().message};
  return checked(*std::move(model));
}

Result<Strategy> load_strategy(const std::string& name, const Model& model,
                               const Environment& environment) {
  yaml::Loader loader({.catalogue = environment.catalogue, .overrides = {}});
  auto strategy = load<Strategy>(name, loader);
  if (!strategy) return strategy;
  Strategy complete = *std::move(strategy);
  if (complete.framework->name.empty()) {
    auto framework = loader.read_ref<Framework>(study::kDefaultFramework, "framework");
    if (!framework) return framework.error();
    complete.framework = {.value = *std::move(framework),
                          .name = std::string(study::kDefaultFramework)};
  }
  if (auto error = study::misfit(complete, model, complete.devices(), loader, ""))
    return *std::move(error);
  return complete;
}

}  // namespace foreshard::cli
