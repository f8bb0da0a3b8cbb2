// Low-rank adapters beside linear layers (adapters.h). The builders of layers call adapted() for
// each product that may have one; without an adapter it gives back the product.
#include "strategies/graph/internal/block_builder.h"

namespace foreshard::internal {

TensorId BlockBuilder::adapted(AdapterTarget target, const std::string& name, TensorId y,
                               TensorId x, const std::vector<std::vector<Axis>>& dims) {
  if (!model_.has_adapter(target)) return y;
  begin(Part::kAdapters);
  const auto product = [&](const std::string& part, TensorId of, std::int64_t out,
                           std::vector<std::vector<Axis>> split) {
    const TensorId weight =
        parameter(name + part + ".weight", {graph_[of].shape.back(), out}, std::move(split));
    graph_[weight].frozen = false;
    return added({.type = "matmul", .name = name + part, .inputs = {of, weight}});
  };
  if (model_.adapters->dropout)
    x = added({.type = "dropout",
               .name = name + ".adapter_dropout",
               .inputs = {x},
               .settings = {{"rate", kDropoutRate}, {"fused", true}},
               .output_names = {name + ".adapter_dropout", name + ".adapter_mask"}});
  const bool by_rows = !dims.front().empty();
  const TensorId narrow =
      product(".adapter_in", x, model_.adapters->rank, {dims.front(), by_rows ? kWhole : tensor()});
  const TensorId wide = product(".adapter_out", narrow, graph_[y].shape.back(), {kWhole, tensor()});
  const TensorId scaled =
      added({.type = "unary",
             .name = name + ".adapter_scale",
             .inputs = {wide},
             .settings = {{"operation", std::string("scale")}, {"value", kAdapterScale}}});
  const TensorId both = sum(name + ".adapted", y, scaled);
  return by_rows ? at_boundary(both) : both;
}

}  // namespace foreshard::internal
