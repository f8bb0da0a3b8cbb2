#include "strategies/graph/operators/gradients.h"

#include <string>

#include "strategies/graph/operators/internal/support.h"

namespace foreshard {

bool Gradients::wants(std::size_t index) const {
  return index < op().inputs.size() && operators::is_float(tensor(input(index)).dtype);
}

std::vector<TensorId> Gradients::of_outputs_or_zero() {
  std::vector<TensorId> all;
  for (std::size_t i = 0; i < op().outputs.size(); ++i) {
    TensorId gradient = of_output(i);
    if (!gradient.valid())
      gradient = add("unary", "zero" + std::to_string(i), {output(i)},
                     {{"operation", std::string("scale")}, {"value", 0.0}})[0];
    all.push_back(gradient);
  }
  return all;
}

}  // namespace foreshard
