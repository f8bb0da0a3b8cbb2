#include "strategies/graph/graph.h"

namespace foreshard {

TensorId Graph::add(Tensor tensor) {
  tensors.push_back(std::move(tensor));
  return TensorId{static_cast<std::int64_t>(tensors.size()) - 1};
}

std::int64_t elements(const Tensor& tensor) {
  std::int64_t n = 1;
  for (const std::int64_t extent : tensor.shape) n *= extent;
  return n;
}

}  // namespace foreshard
