#include "base/yaml/describe.h"
#include "tests/configs/probes.h"

#include "sim/sweep/results.h"

namespace foreshard {

Probes<sweep::Sweep> probes_of(const sweep::Sweep*, const std::string& name) {
  return {[name](const sweep::Sweep& one) {
    const sweep::LoadedSweep loaded{.name = name, .folder = {}, .file = name, .sweep = one};
    const sweep::Question question = sweep::question_of(loaded);
    std::string text = sweep::text_of(question) + one.study;
    for (const auto* part : {&one.cluster, &one.model, &one.strategy, &one.communication})
      if (*part) text += "\n" + (*part)->text;
    if (one.search) text += "\n" + yaml::echo(*one.search);
    for (std::int64_t i = 0; i < sweep::size_of(question.axes); ++i)
      for (const yaml::Override& each : sweep::overrides_of(loaded, i))
        text += "\n" + each.path + "=" + each.value;
    return text;
  }};
}

}  // namespace foreshard
