// The model that options of Megatron-LM describe, for megatron_family.cc: finish_megatron_model
// turns the notes of a draft ("note.x": options that make a key of ours only together with others)
// into "model." keys, fills in Megatron's defaults and refuses what is not modelled;
// spread_megatron_model makes the notes of a model that is written. An option that alone makes a
// key, such as the kind of position embedding, is a row of the formats' tables instead
// (megatron.cc, megatron_bridge.cc, nemo.cc). Sequences, windows and tables of positions are
// tokens. Without layers and a hidden size there is no model, and Megatron's defaults are dropped.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "base/text.h"
#include "base/yaml/quoted.h"

#include "strategies/launch/internal/megatron.h"

namespace foreshard::launch::internal {
namespace {

// Megatron's own width of a gated layer: two thirds of 4 x hidden, rounded down to a multiple
// of 64.
std::int64_t gated_width(std::int64_t hidden) {
  return 8 * hidden / 3 / 64 * 64;
}

// \pre the row of the key reads numbers (Kind::kNumber).
double number(const Draft& draft, std::string_view key) {
  const std::string text = draft.word(key);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void dropout(Draft& draft, const ReadContext& reading) {
  if (!draft.has("note.attention_dropout") || !draft.has("note.hidden_dropout")) return;
  const bool attention = number(draft, "note.attention_dropout") > 0;
  const bool hidden = number(draft, "note.hidden_dropout") > 0;
  draft.set("model.dropout", attention || hidden ? "true" : "false",
            draft.from("note.hidden_dropout"));
  if (attention != hidden)
    reading.leave_out(draft.from(attention ? "note.hidden_dropout" : "note.attention_dropout"),
                      "the model has one dropout, for branches and attention scores together");
}

// The number of layers without experts that come before the layers with experts: the n of
// "([0]*n+[1]*m)", 1 for "([0]+[1]*m)", 0 for "1", and of a list its leading zeros; nothing for
// other patterns. m is not read: all other layers have experts.
std::optional<std::int64_t> leading_dense(const Value& frequency) {
  const std::vector<std::string>& words = frequency.words;
  if (!frequency.list) {
    const std::string& text = words.front();
    if (text == "1") return 0;
    const std::string_view prefix = "([0]";
    if (!text.starts_with(prefix)) return std::nullopt;
    std::string_view rest = std::string_view(text).substr(prefix.size());
    std::int64_t dense = 1;
    if (rest.starts_with('*')) {
      const char* const last = rest.data() + rest.size();
      const auto [end, status] = std::from_chars(rest.data() + 1, last, dense);
      if (status != std::errc()) return std::nullopt;
      rest = {end, static_cast<std::size_t>(last - end)};
    }
    const bool fits =
        rest.starts_with("+[1]*") && rest.ends_with(")") && std::ranges::count(rest, '[') == 1;
    return fits ? std::optional(dense) : std::nullopt;
  }
  const auto first = std::ranges::find(words, "1");
  const bool regular = std::all_of(words.begin(), first, [](auto& word) { return word == "0"; }) &&
                       std::all_of(first, words.end(), [](auto& word) { return word == "1"; });
  return regular ? std::optional<std::int64_t>(first - words.begin()) : std::nullopt;
}

Status experts(Draft& draft) {
  if (draft.count("model.experts", 0) == 0) {
    for (const auto* key : {"model.experts", "model.experts_per_token", "model.expert_groups",
                            "model.groups_per_token", "model.expert_ffn", "model.shared_ffn",
                            "strategy.capacity_factor"})
      draft.drop(key);
    return {};
  }
  const bool has_frequency = draft.has("note.moe_frequency");
  const auto dense = has_frequency ? leading_dense(draft.at("note.moe_frequency")) : 0;
  if (!dense)
    return fault(draft.place("note.moe_frequency"), draft.from("note.moe_frequency"),
                 "only dense layers before all layers with experts are modelled",
                 "write ([0]*3+[1]*58), or give the model with --model", Error::Code::kUnsupported);
  const bool has_mlp_layers = draft.word("model.pattern").find('-') != std::string::npos;
  if (draft.has("model.expert_ffn") && *dense == 0 && !has_mlp_layers) draft.drop("model.ffn");
  if (*dense > 0) draft.set("model.dense_layers", *dense, draft.from("note.moe_frequency"));
  return {};
}

// Megatron's command line has a switch and the number of groups (a number without the switch has no
// effect); the YAML files of NeMo and Megatron-Bridge have only the number.
void heads(Draft& draft) {
  const std::string key =
      draft.is("note.grouped_query") ? "note.query_groups" : "note.groups_alone";
  if (draft.has(key)) draft.set("model.kv_heads", draft.word(key), draft.from(key));
}

// Source: NVIDIA/Megatron-LM, megatron/training/arguments.py (_add_mla_args: defaults),
// megatron/core/transformer/multi_latent_attention.py (q_head_dim).
void latents(Draft& draft) {
  if (!draft.is("note.latents")) {
    for (const auto* key :
         {"model.query_rank", "model.key_value_rank", "model.rotary_dim", "model.value_dim"})
      draft.drop(key);
    return;
  }
  const std::string from = draft.from("note.latents");
  const std::int64_t rotary = draft.count("model.rotary_dim", 64);
  draft.set("model.head_dim", draft.count("note.unrotated_dim", 128) + rotary,
            draft.from(draft.has("note.unrotated_dim") ? "note.unrotated_dim" : "note.latents"));
  for (const auto& [key, value] :
       {std::pair("model.key_value_rank", std::int64_t{32}), std::pair("model.rotary_dim", rotary),
        std::pair("model.value_dim", std::int64_t{128})})
    if (!draft.has(key)) draft.set(key, value, from);
  draft.drop("model.kv_heads");  // every head has keys of its own
}

// Source: NVIDIA/Megatron-LM, megatron/training/arguments.py (_add_experimental_args: defaults),
// megatron/core/ssm/mamba_mixer.py (by default, as many heads as make twice the hidden size).
Status state_spaces(Draft& draft) {
  const std::string pattern = draft.word("model.pattern");
  if (pattern.find('M') == std::string::npos) {
    for (const auto* key :
         {"model.mamba.heads", "model.mamba.head_dim", "model.mamba.groups", "model.mamba.state"})
      draft.drop(key);
    return {};
  }
  draft.set("model.pattern", yaml::quoted(pattern), draft.from("model.pattern"));
  const std::int64_t width = draft.count("model.mamba.head_dim", 64);
  if (width < 1)
    return fault(draft.place("model.mamba.head_dim"), draft.from("model.mamba.head_dim"),
                 "out of range", "use a number from 1 on");
  for (const auto& [key, value] :
       {std::pair("model.mamba.heads", 2 * draft.count("model.hidden", 0) / width),
        std::pair("model.mamba.head_dim", width), std::pair("model.mamba.groups", std::int64_t{8}),
        std::pair("model.mamba.state", std::int64_t{128})})
    if (!draft.has(key)) draft.set(key, value, "Megatron's default for Mamba layers");
  return {};
}

// A learned table that is longer than the sequence.
void positions(Draft& draft) {
  const std::int64_t table = draft.count("note.positions", 0);
  const std::int64_t sequence = draft.count("model.sequence", table);
  if (draft.word("model.positions", "learned") == "learned" && table > sequence && sequence > 0)
    draft.set("model.position_table", table, draft.from("note.positions"));
}

// A window of Transformer Engine: "4096,0" means the 4096 tokens before the query; the query itself
// comes on top. The second number, of tokens after the query, is not read. A window that holds the
// whole sequence, and a negative one, count as none.
Status windows(Draft& draft) {
  if (!draft.has("note.window")) return {};
  const std::string first = draft.at("note.window").words.front();
  const std::size_t digits = std::min(first.find_first_of("-0123456789"), first.size());
  std::int64_t before = 0;
  const char* end = first.data() + first.size();
  const std::string place = draft.place("note.window");
  const std::string from = draft.from("note.window");
  if (std::from_chars(first.data() + digits, end, before).ec != std::errc())
    return fault(place, from, "expected the tokens to the left and to the right",
                 "write two whole numbers, such as 4096,0");
  const std::int64_t sequence = draft.count("model.sequence", 0);
  if (before < 0 || (sequence > 0 && before + 1 >= sequence)) return {};
  if (draft.has("note.window_pattern"))
    return fault(
        draft.place("note.window_pattern"), draft.from("note.window_pattern"),
        "layers of full attention between those with windows are not read from such files",
        fmt::format("give the model as --model, with window: {} and full_interval", before + 1),
        Error::Code::kUnsupported);
  draft.set("model.window", before + 1, from);
  return {};
}

}  // namespace

Status finish_megatron_model(Draft& draft, const ReadContext& reading) {
  const bool described = draft.has("model.layers") && draft.has("model.hidden");
  if (!described) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : draft.values())
      // Where a row's default was taken, `from` is "--option is 0.1 by default" (rows.cc).
      if (key.starts_with("model.") && key != "model.sequence" && value.from.ends_with("default"))
        keys.push_back(key);
    for (const std::string& key : keys) draft.drop(key);
    if (draft.has("note.window"))
      reading.leave_out(draft.from("note.window"),
                        "the window is the model's: give it with --model");
    return {};
  }
  heads(draft);
  latents(draft);
  FORESHARD_TRY(state_spaces(draft));
  dropout(draft, reading);
  positions(draft);
  FORESHARD_TRY(windows(draft));
  if (!draft.has("model.ffn") && draft.word("model.activation") == "swiglu")
    draft.set("model.ffn", gated_width(draft.count("model.hidden", 0)),
              "two thirds of 4 x hidden, as no width is given");
  if (draft.word("model.bias", "true") == "true") draft.drop("model.qkv_bias");  // included
  FORESHARD_TRY(experts(draft));
  if (!draft.has("model.name"))
    draft.set("model.name",
              yaml::quoted(std::filesystem::path(reading.request.name).stem().string()), "");
  return {};
}

void spread_megatron_model(Draft& draft, const WriteContext& writing) {
  if (writing.model == nullptr || !draft.has("model.layers")) return;
  const Model& model = *writing.model;
  // \param our_key  the key of ours that only this note expresses, if there is one.
  const auto note = [&](std::string_view key, std::string word, std::string our_key = {}) {
    draft.set(key, std::move(word), std::move(our_key));
  };
  if (model.has_latents()) {
    note("note.latents", "true", "model.key_value_rank");
    note("note.unrotated_dim", std::to_string(model.head_size() - model.rotary_dim),
         "model.head_dim");
    draft.drop("model.head_dim");
  }
  if (model.kv() != model.heads) {
    note("note.grouped_query", "true");
    note("note.query_groups", std::to_string(model.kv()));
    note("note.groups_alone", std::to_string(model.kv()));
  }
  draft.drop("model.kv_heads");
  note("note.attention_dropout", model.dropout ? "0.1" : "0");
  note("note.hidden_dropout", model.dropout ? "0.1" : "0");
  draft.drop("model.dropout");
  if (model.activation == Activation::kSwiglu) draft.set("model.ffn", model.ffn_width(), "");
  note("note.positions", std::to_string(model.position_rows()),
       model.position_table > 0 ? "model.position_table" : "");
  draft.drop("model.position_table");
  if (model.experts > 0 && model.dense_layers > 0) {
    note("note.moe_frequency",
         fmt::format("([0]*{}+[1]*{})", model.dense_layers, model.layers - model.dense_layers),
         "model.dense_layers");
    draft.drop("model.dense_layers");
  }
  if (model.experts == 0) draft.drop("model.experts_per_token");
}

}  // namespace foreshard::launch::internal
