// The heads of attention from latents (MLA). Keys and values are projected from latents, head by
// head: first the columns of the key that do not rotate, then the value. The columns that rotate
// come from one key that all heads share.
// Source: DeepSeek-AI, "DeepSeek-V2", arXiv 2405.04434, section 2.1.
#include <fmt/format.h>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

struct Widths {
  std::int64_t heads;
  std::int64_t rotary;
  std::int64_t value;
  std::int64_t key;  // width of a whole head of queries or keys

  std::int64_t projected() const { return key - rotary + value; }
};
Widths widths_of(const Settings& settings, std::int64_t query_columns) {
  const std::int64_t heads = settings.integer("heads");
  return {heads, settings.integer("rotary_dim"), settings.integer("value_dim"),
          heads > 0 ? query_columns / heads : 0};
}

// What is wrong with settings and queries [batch, sequence, heads x key]; empty if nothing is.
std::string fault_in(const Settings& settings, const Shape& queries) {
  if (queries.size() != 3) return "needs [batch, sequence, columns], not " + text_of(queries);
  const Widths w = widths_of(settings, queries[2]);
  if (w.heads < 1 || queries[2] % w.heads != 0)
    return fmt::format("{} columns of queries do not divide into {} heads", queries[2], w.heads);
  if (w.rotary < 2 || w.rotary % 2 != 0 || w.rotary >= w.key || w.value < 1)
    return fmt::format(
        "of heads of {} columns an even part rotates, not {}, and values have a width, not {}",
        w.key, w.rotary, w.value);
  return {};
}

struct Parts {
  RuleMaker make;
  RuleMaker::Dimensions heads;
  RuleMaker::Dimensions shared;  // dimensions of the key that all heads share
};
Parts parts_of(const Widths& widths, const Shape& x) {
  Parts p;
  p.shared = {{p.make.factor(x[0], false, "batch")}, {p.make.factor(x[1], false, "sequence")}, {}};
  p.heads = p.shared;
  p.heads[2] = {p.make.factor(widths.heads, false, "heads")};
  return p;
}

Shape columns(const Shape& x, std::int64_t count) {
  return {x[0], x[1], count};
}

// queries, keys_values, rotary_key -> queries, keys_values
Result<Inferred> infer_latent_heads(const Call& call) {
  const TensorType& queries = call.inputs[0];
  if (const auto why = fault_in(call.settings, queries.shape); !why.empty()) return wrong(why);
  const Widths w = widths_of(call.settings, queries.shape[2]);
  if (call.inputs[1].shape != columns(queries.shape, w.heads * w.projected()) ||
      call.inputs[2].shape != columns(queries.shape, w.rotary))
    return wrong("keys with values " + text_of(call.inputs[1].shape) +
                 " and the key that rotates " + text_of(call.inputs[2].shape) +
                 " do not fit queries " + text_of(queries.shape));
  Parts p = parts_of(w, queries.shape);
  p.make.input(p.heads).input(p.heads).input(p.shared).output(p.heads).output(p.heads);
  return Inferred{{queries, {queries.dtype, columns(queries.shape, w.heads * (w.key + w.value))}},
                  p.make.take()};
}

// dqueries, dkeys_values -> gradients of the inputs
Result<Inferred> infer_latent_heads_gradient(const Call& call) {
  const TensorType& queries = call.inputs[0];
  if (const auto why = fault_in(call.settings, queries.shape); !why.empty()) return wrong(why);
  const Widths w = widths_of(call.settings, queries.shape[2]);
  if (call.inputs[1].shape != columns(queries.shape, w.heads * (w.key + w.value)))
    return wrong("gradients " + text_of(queries.shape) + " and " + text_of(call.inputs[1].shape) +
                 " do not fit the heads");
  Parts p = parts_of(w, queries.shape);
  p.make.input(p.heads).input(p.heads).output(p.heads).output(p.heads).output(p.shared);
  return Inferred{{queries,
                   {queries.dtype, columns(queries.shape, w.heads * w.projected())},
                   {queries.dtype, columns(queries.shape, w.rotary)}},
                  p.make.take()};
}

// Fused: queries are rotated in place, and one kernel assembles the keys; it moves about as many
// bytes as a copy of keys and values. Eager: copies assemble queries and keys, and other copies
// split their gradients. Not modelled: in the eager form, the rotation of the one key that all
// heads share.
// Source: NVIDIA/Megatron-LM, megatron/core/fusions/fused_mla_yarn_rope_apply.py and
// megatron/core/transformer/multi_latent_attention.py.
template <Direction direction>
std::vector<Kernel> latent_heads_kernels(const Call& local, const Call& whole) {
  const bool forward = direction == Direction::kForward;
  const TensorType& queries = local.inputs[0];
  const Widths w = widths_of(local.settings, whole.inputs[0].shape[2]);
  const std::int64_t heads = queries.shape[2] / w.key;
  const auto pass = [&](PassKind kind, std::int64_t columns) {
    return Pass{.kind = kind,
                .rows = queries.shape[0] * queries.shape[1],
                .columns = columns,
                .dtype = queries.dtype};
  };
  const PassKind turn = forward ? PassKind::kRopeForward : PassKind::kRopeBackward;
  const std::string how = local.settings.flag("eager") ? "eager" : "fused";
  std::vector<Kernel> kernels = implemented(pass(turn, heads * w.rotary), how);
  if (how == "fused") {
    kernels.emplace_back(pass(PassKind::kTranspose, heads * (w.key + w.value)));
    return kernels;
  }
  kernels.emplace_back(pass(PassKind::kTranspose, heads * w.key));
  kernels.emplace_back(pass(PassKind::kTranspose, heads * (forward ? w.key : w.projected())));
  if (!forward) kernels.emplace_back(pass(PassKind::kReduce, heads * w.rotary));
  return kernels;
}

void latent_heads_backward(Gradients& gradients) {
  if (!gradients.of_output(0).valid() || !gradients.of_output(1).valid()) return;
  const auto parts =
      gradients.add("latent_heads_gradient", "", {gradients.of_output(0), gradients.of_output(1)},
                    gradients.op().settings);
  for (std::size_t i = 0; i < parts.size(); ++i) gradients.give(i, parts[i]);
}

std::vector<SettingDefinition> latent_settings() {
  return {{.name = "heads", .fallback = std::int64_t{1}, .required = true, .doc = "Of all."},
          {.name = "rotary_dim",
           .fallback = std::int64_t{0},
           .required = true,
           .doc = "Columns of a head of queries and keys that rotate, its last."},
          {.name = "value_dim",
           .fallback = std::int64_t{0},
           .required = true,
           .doc = "Width of a head of the values."},
          eager_setting()};
}

}  // namespace

OperatorDefinition latent_heads() {
  return {.name = "latent_heads",
          .doc =
              "Turns queries, and the key that all heads share, by their positions, and puts the "
              "heads of keys and values together (MLA).",
          .inputs = "queries, keys_values, rotary_key",
          .outputs = "queries, keys_values",
          .least_inputs = 3,
          .most_inputs = 3,
          .settings = latent_settings(),
          .infer = infer_latent_heads,
          .kernels = latent_heads_kernels<Direction::kForward>,
          .gradient = latent_heads_backward};
}

OperatorDefinition latent_heads_gradient() {
  return {.name = "latent_heads_gradient",
          .doc = "The gradients of `latent_heads`.",
          .inputs = "dqueries, dkeys_values",
          .outputs = "dqueries, dkeys_values, drotary_key",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = latent_settings(),
          .infer = infer_latent_heads_gradient,
          .kernels = latent_heads_kernels<Direction::kBackward>};
}

}  // namespace foreshard::operators
