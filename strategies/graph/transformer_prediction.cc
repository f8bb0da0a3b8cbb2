// A module that predicts one more token (transformer.h).
#include <fmt/format.h>

#include "strategies/graph/internal/block_builder.h"

namespace foreshard::internal {

Graph prediction_graph(const Model& model, const TransformerOptions& options, std::int64_t depth) {
  const bool several = model.multi_token_prediction > 1;
  BlockBuilder build(several ? fmt::format("prediction_{}", depth) : "prediction", model, options,
                     model.kind_of_prediction());
  build.quantize();
  // Only operators of the module's layer belong to parts; norms around it belong to none.
  const auto normed = [&](const std::string& name, TensorId x) {
    const TensorId y = build.norm(name, x);
    build.maker_of(y)->part = Part::kNone;
    build.begin(Part::kNone);
    return y;
  };
  const auto alone = [&](const std::string& name, TensorId x) {
    return build.reshaped(name, x, {1, options.batch, model.sequence, model.hidden});
  };
  TensorId x;
  TensorId before;  // streams of the earlier predictions
  TensorId stream;
  if (depth == 1) {
    x = build.boundary("prediction_in");
    stream = normed("final_norm", x);
    before = alone("streams_before", stream);
  } else {
    before = x = build.streams("prediction_in", depth);
    const TensorId last = build.added({.type = "slice",
                                       .name = "last_stream",
                                       .inputs = {x},
                                       .settings = {{"start", depth - 1}, {"end", depth}}});
    stream = build.reshaped("stream", last, build.tokens(model.hidden));
  }
  const TensorId ids = build.token_ids();
  const TensorId embedded = build.at_boundary(build.looked_up(ids, "embedded"));
  const TensorId next = normed("embedding_norm", embedded);
  const TensorId own = normed("stream_norm", stream);
  const TensorId both = build.added({.type = "concat",
                                     .name = "joined",
                                     .inputs = {next, own},
                                     .settings = {{"axis", std::int64_t{2}}}});
  TensorId projected = build.matmul("projection", both, 2 * model.hidden, model.hidden,
                                    {build.kWhole, build.tensor()});
  projected = build.moved("projected", projected, {build.batch(), build.context(), build.kWhole});
  if (options.sequence_parallel)
    projected =
        build.moved("own_projected", projected, {build.batch(), build.sequence(), build.kWhole});
  const TensorId predicted = normed("prediction_norm", build.layer(projected, "layer_out"));
  const TensorId all = build.added({.type = "concat",
                                    .name = "streams",
                                    .inputs = {before, alone("own_stream", predicted)},
                                    .settings = {{"axis", std::int64_t{0}}}});
  return build.take({x, ids}, {build.as_streams(all)});
}

}  // namespace foreshard::internal
