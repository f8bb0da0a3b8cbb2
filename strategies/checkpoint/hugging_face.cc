#include "strategies/checkpoint/hugging_face.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/grouped.h"

namespace foreshard::checkpoint {
namespace {

enum class Cut : std::uint8_t {
  kRows,     ///< [out, in], outputs cut over the tensor-parallel ranks.
  kColumns,  ///< [out, in], inputs cut over the tensor-parallel ranks.
  kUp,       ///< kRows, or kPacked if the tensor also holds the gate.
  kPacked,   ///< Several projections one after another, which cannot be cut.
  kTable,    ///< [vocabulary, hidden], cut as the embedding's table.
  kWhole,    ///< Whole on every rank of its stage.
};

// A module by its name, the last one before ".weight" or ".bias"; modules of layers come first.
// InternLM 2's wqkv has, for each key head, its queries, the key and the value, so equal parts have
// whole groups of heads. GPT-2's c_fc and c_proj are [in, out] and Qwen's w2 is no down projection;
// but models with these also have a c_attn, which cannot be cut.
struct ModuleCut {
  std::string_view name;
  Cut cut;
};

constexpr ModuleCut kInLayers[]{
    {"q_proj", Cut::kRows},       {"k_proj", Cut::kRows},
    {"v_proj", Cut::kRows},       {"gate_proj", Cut::kRows},
    {"up_proj", Cut::kRows},      {"fc1", Cut::kRows},
    {"fc_in", Cut::kRows},        {"c_fc", Cut::kRows},
    {"c_fc_0", Cut::kRows},       {"c_fc_1", Cut::kRows},
    {"w1", Cut::kRows},           {"w3", Cut::kRows},
    {"wqkv", Cut::kRows},         {"dense_h_to_4h", Cut::kUp},
    {"o_proj", Cut::kColumns},    {"out_proj", Cut::kColumns},
    {"down_proj", Cut::kColumns}, {"fc2", Cut::kColumns},
    {"fc_out", Cut::kColumns},    {"dense_4h_to_h", Cut::kColumns},
    {"dense", Cut::kColumns},     {"c_proj", Cut::kColumns},
    {"w2", Cut::kColumns},        {"wo", Cut::kColumns},
    {"qkv_proj", Cut::kPacked},   {"query_key_value", Cut::kPacked},
    {"c_attn", Cut::kPacked},     {"W_pack", Cut::kPacked},
    {"Wqkv", Cut::kPacked},       {"gate_up_proj", Cut::kPacked},
};

constexpr std::string_view kTables = " embed_tokens wte word_embeddings embed_in tok_embeddings ";
constexpr std::string_view kPositions = " wpe embed_positions ";
constexpr std::string_view kHeads = " lm_head embed_out output output_layer ";

// Constants that some files keep beside the parameters.
constexpr std::string_view kBuffers[]{"rotary_emb.inv_freq", "rotary_pos_emb.inv_freq",
                                      ".attn.bias", ".masked_bias", ".attention.bias"};

// The layer of a tensor: the number between dots in its name, if there is one.
std::optional<std::int64_t> layer_of(std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
       dot = name.find('.', dot + 1)) {
    const std::string_view word = name.substr(dot + 1, name.find('.', dot + 1) - dot - 1);
    std::int64_t number = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
    if (!word.empty() && read.ec == std::errc{} && read.ptr == word.data() + word.size())
      return number;
  }
  return std::nullopt;
}

std::int64_t elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// "q_proj" of "model.layers.0.self_attn.q_proj.weight".
std::string_view module_of(std::string_view name) {
  name = name.substr(0, name.rfind('.'));
  return name.substr(name.rfind('.') + 1);
}

bool among(std::string_view words, std::string_view word) {
  return words.find(fmt::format(" {} ", word)) != std::string_view::npos;
}

class TensorPlacer {
 public:
  explicit TensorPlacer(const std::vector<PlacedTensor>& placed) {
    for (const PlacedTensor& tensor : placed)
      if (tensor.kind == StateKind::kParameter) parameters_[tensor.name] = &tensor;
  }

  Result<TensorEntry> place(const TensorEntry& source) const {
    const auto layer = layer_of(source.name);
    if (layer) return in_layer(source, *layer);
    const std::string_view module = module_of(source.name);
    if (among(kPositions, module)) return whole(source, "position.weight");
    if (module == "word_embeddings_layernorm") return whole(source, "embedding_norm.weight");
    const bool table = among(kTables, module);
    if (!table && !among(kHeads, module)) return whole(source, "final_norm.weight");
    const PlacedTensor* parameter = find(table ? "embedding.weight" : "logits.weight");
    if (parameter == nullptr) parameter = find("embedding.weight");  // tied
    if (parameter == nullptr) return unknown(source);
    const bool turned = parameter->name == "logits.weight" && source.shape.size() == 2;
    return vocabulary(source, *parameter, turned);
  }

 private:
  const PlacedTensor* find(const std::string& name) const {
    const auto found = parameters_.find(name);
    return found == parameters_.end() ? nullptr : found->second;
  }

  static Error unknown(const TensorEntry& source) {
    return {Error::Code::kUnsupported,
            fmt::format("tensor '{}' is no parameter of the model that --model describes",
                        source.name)};
  }

  // The entry of a layer's tensor. The tensor-parallel axes are the ones that cut the outputs of
  // the first projection.
  Result<TensorEntry> in_layer(const TensorEntry& source, std::int64_t layer) const {
    const PlacedTensor* qkv = find(fmt::format("layers.{}.qkv.weight", layer));
    if (qkv == nullptr) return unknown(source);
    const auto known = std::ranges::find(kInLayers, module_of(source.name), &ModuleCut::name);
    const bool matrix = source.shape.size() == 2;
    Cut cut = known == std::end(kInLayers) ? Cut::kWhole : known->cut;
    if (cut == Cut::kWhole && matrix) return unknown(source);
    if (cut == Cut::kUp) {
      const PlacedTensor* down = find(fmt::format("layers.{}.mlp_down.weight", layer));
      const bool gated = down != nullptr && source.shape.front() == 2 * down->shape.front();
      cut = gated ? Cut::kPacked : Cut::kRows;
    }
    const auto& axes = qkv->layout.attribute.dims.back();
    const std::int64_t parts = ways(axes, qkv->layout.mesh.axes);
    if (cut == Cut::kPacked && parts > 1)
      return Error{Error::Code::kUnsupported,
                   fmt::format("tensor '{}' holds several projections one after another, which "
                               "cannot be cut {} ways: give a strategy with tensor_parallel: 1",
                               source.name, parts)};
    TensorEntry to = source;
    to.layout = {.mesh = qkv->layout.mesh, .attribute = replicated(source.shape.size())};
    const bool rows = cut == Cut::kRows;
    if (rows || (cut == Cut::kColumns && matrix)) to.layout.attribute.dims[rows ? 0 : 1] = axes;
    return to;
  }

  Result<TensorEntry> whole(const TensorEntry& source, const std::string& like) const {
    const PlacedTensor* parameter = find(like);
    if (parameter == nullptr || source.shape.size() != parameter->shape.size())
      return unknown(source);
    TensorEntry to = source;
    to.layout = {.mesh = parameter->layout.mesh, .attribute = replicated(source.shape.size())};
    return to;
  }

  static Result<TensorEntry> vocabulary(const TensorEntry& source, const PlacedTensor& parameter,
                                        bool turned) {
    TensorEntry to = source;
    to.layout = parameter.layout;
    to.shape = parameter.shape;
    to.unpadded = parameter.unpadded == parameter.shape ? Shape{} : parameter.unpadded;
    if (turned) {
      std::ranges::reverse(to.shape);
      std::ranges::reverse(to.unpadded);
      std::ranges::reverse(to.layout.attribute.dims);
    }
    if (source.shape.size() == to.shape.size()) return to;
    // The bias of the output projection.
    to.shape.resize(1);
    if (!to.unpadded.empty()) to.unpadded.resize(1);
    to.layout.attribute.dims.resize(1);
    return to;
  }

  std::map<std::string, const PlacedTensor*> parameters_;
};

}  // namespace

bool is_hugging_face(const Source& source) {
  return source.origin.starts_with(kHuggingFace);
}

Result<Target> target_by_parameters(const Source& source, const std::vector<PlacedTensor>& placed) {
  const TensorPlacer placer(placed);
  Target target;
  for (const SourceTensor& tensor : source.tensors) {
    const std::string& name = tensor.entry.name;
    if (std::ranges::any_of(kBuffers, [&](std::string_view end) { return name.ends_with(end); })) {
      target.left_out.push_back(name);
      continue;
    }
    FORESHARD_ASSIGN(auto entry, placer.place(tensor.entry));
    target.tensors.push_back(std::move(entry));
  }
  return target;
}

Status other_elements(const Target& target, const std::vector<PlacedTensor>& placed) {
  // layer (nothing: outside all layers) -> elements held and wanted.
  std::map<std::optional<std::int64_t>, std::pair<std::int64_t, std::int64_t>> held_and_wanted;
  bool tied = true;
  for (const PlacedTensor& tensor : placed) {
    if (tensor.kind != StateKind::kParameter) continue;
    tied = tied && tensor.name != "logits.weight";
    held_and_wanted[layer_of(tensor.name)].second += elements_of(tensor.unpadded);
  }
  for (const TensorEntry& tensor : target.tensors) {
    // A tied head is the embedding's table again.
    if (tied && among(kHeads, module_of(tensor.name))) continue;
    held_and_wanted[layer_of(tensor.name)].first += elements_of(tensor.logical());
  }
  for (const auto& [layer, count] : held_and_wanted) {
    const auto& [held, wanted] = count;
    if (held == wanted) continue;
    const std::string where =
        layer ? fmt::format("layer {}", *layer) : "embeddings, final norm and output projection";
    return Error{
        Error::Code::kInvalidInput,
        fmt::format("the checkpoint holds {} parameters for {}, but the model that --model "
                    "describes has {}\n   help: give the config.json beside the tensors; "
                    "where it is that, tensors are missing",
                    grouped(held), where, grouped(wanted))};
  }
  return {};
}

std::optional<std::string> hf_index(const ConversionPlan& plan) {
  const Target& target = plan.target;
  if (!target.origin.starts_with(kHuggingFace) || target.format != FileFormat::kSafetensors)
    return std::nullopt;
  std::int64_t total = 0;
  std::map<std::string, std::string> weight_map;
  for (const TargetFile& file : plan.files) {
    for (const TargetFile::Slice& slice : file.slices) {
      const TensorEntry& tensor = target.tensors[static_cast<std::size_t>(slice.tensor)];
      if (slice.box != whole_of(tensor.logical())) return std::nullopt;
      // The first of a tensor's replicas counts.
      const bool is_new =
          weight_map.emplace(tensor.name, shard_name(file.rank, target.format)).second;
      if (is_new) total += *bytes_of(tensor.type, tensor.shape);
    }
  }
  const nlohmann::ordered_json index{{"metadata", {{"total_size", total}}},
                                     {"weight_map", weight_map}};
  return index.dump(2) + "\n";
}

}  // namespace foreshard::checkpoint
