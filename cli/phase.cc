#include "cli/phase.h"

#include "base/yaml/given.h"
#include "cli/output.h"

#include "sim/study/study.h"

namespace foreshard::cli {

Result<Model> load_model(const std::string& name, yaml::Loader& loader, std::string_view at) {
  if (!study::is_hf_config(name)) {
    FORESHARD_ASSIGN(auto model, yaml::read_given<Model>(name, loader, at));
    return checked(std::move(model));
  }
  auto imported = study::import_model({.config = name, .name = {}, .sequence = {}}, {}, loader);
  if (imported) {
    for (const std::string& remark : imported->remarks) note(remark);
    return checked(imported->model);
  }
  const Error& error = imported.error();
  return error.code == Error::Code::kIo ? error : Error{error.code, name + ": " + error.message};
}

Result<Strategy> load_strategy(const std::string& name, const Model& model,
                               const Environment& environment) {
  yaml::Loader loader({.catalogue = environment.catalogue, .overrides = {}});
  FORESHARD_ASSIGN(Strategy complete, yaml::read_given<Strategy>(name, loader));
  if (complete.framework->name.empty()) {
    FORESHARD_ASSIGN(auto framework,
                     loader.read_ref<Framework>(study::kDefaultFramework, "framework"));
    complete.framework = {.value = std::move(framework),
                          .name = std::string(study::kDefaultFramework)};
  }
  FORESHARD_TRY(study::misfit(complete, model, complete.devices(), loader, ""));
  return complete;
}

}  // namespace foreshard::cli
