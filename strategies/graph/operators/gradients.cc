#include "strategies/graph/operators/gradients.h"

#include "strategies/graph/operators/internal/support.h"

namespace foreshard {

bool Gradients::wants(std::size_t index) const {
  return index < op().inputs.size() && operators::is_float(tensor(input(index)).dtype);
}

}  // namespace foreshard
