/// \file
/// The formats behind `formats()`, one file each, and what defines a format: how its texts are cut
/// into settings, and a table that maps settings to keys of ours. import.cc and export.cc run a
/// format; to add one, write its .cc and list it in formats.cc.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/launch/launch.h"

namespace foreshard::launch::internal {

/// A value of a launch file, while the file is read or written.
struct Value {
  std::vector<std::string> words{};
  bool list = false;
  /// The setting it follows from: "--tensor-model-parallel-size 8". When a note is written: the key
  /// of ours that only this note expresses, if there is one.
  std::string from{};
  std::string place{};  ///< "file:line:column"
  /// When a value is written: why no file can express it together with the other values; empty: no
  /// reason is known.
  std::string forbidden{};
};

/// key -> value. Keys are keys of ours ("strategy.tensor_parallel", "model.layers") and notes
/// ("note.recompute_method"): settings that make a key of ours only together with others.
class Draft {
 public:
  bool has(std::string_view key) const { return values_.contains(key); }
  /// \pre has(key)
  const Value& at(std::string_view key) const { return values_.find(key)->second; }
  /// The only word of a value; `otherwise` if the key is not there.
  std::string word(std::string_view key, std::string_view otherwise = {}) const;
  std::int64_t count(std::string_view key, std::int64_t otherwise = 1) const;
  bool is(std::string_view key) const { return word(key) == "true"; }
  std::string from(std::string_view key) const { return has(key) ? at(key).from : std::string(); }
  std::string place(std::string_view key) const { return has(key) ? at(key).place : std::string(); }

  void set(std::string_view key, Value value) {
    values_.insert_or_assign(std::string(key), std::move(value));
  }
  void set(std::string_view key, std::string word, std::string from) {
    set(key, Value{.words = {std::move(word)}, .from = std::move(from)});
  }
  void set(std::string_view key, std::int64_t count, std::string from) {
    set(key, std::to_string(count), std::move(from));
  }
  void set_list(std::string_view key, const std::vector<std::int64_t>& counts, std::string from);
  void drop(std::string_view key);
  /// Keeps `key`, if it is there, from being written; `why` says why no file can express it.
  void forbid(std::string_view key, std::string why);

  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

 private:
  std::map<std::string, Value, std::less<>> values_;
};

/// One key of a file with its value.
struct Setting {
  std::string key;                   ///< "--bf16", "zero_optimization.stage".
  std::vector<std::string> words{};  ///< The value. Empty: null, or an empty list.
  bool list = false;
  std::string place{};
};

enum class Kind : std::uint8_t {
  kCount,   ///< A whole number; also "5e8".
  kNumber,  ///< A number.
  kSwitch,  ///< true or false, in any of their usual words.
  kWord,    ///< One of the row's words.
  kText,    ///< Anything.
};

/// Value of `Row::otherwise` for a key that is always written.
inline constexpr std::string_view kAlways = "!";

/// Maps a key of the framework ("theirs") to a key of ours, or to a note from which `finish` makes
/// one.
struct Row {
  std::string_view theirs;
  std::string_view ours;  ///< "strategy.tensor_parallel", or "note.x" for `finish` and `spread`.
  Kind kind = Kind::kCount;
  /// Their words with ours, "p2p=overlapped-all-gather a2a=all-to-all": for kWord, and for kSwitch
  /// if ours are not true and false. A word of theirs with nothing after '=' leaves our default.
  std::string_view words = {};
  /// What the framework takes if the file does not set the key. Given only where that differs from
  /// our default; empty: our default (a note then has no value). kAlways: the key is always
  /// written.
  std::string_view otherwise = {};
};

/// Keys that change a step, or what it computes, and that foreshard does not model.
struct Rule {
  std::string_view keys;    ///< Globs, separated by blanks.
  std::string_view unless;  ///< Values, besides false and 0, with which such a key changes nothing.
  std::string_view why;
  bool refused = false;  ///< True: an error. False: left out, with a remark.
};

/// What `finish` gets besides the draft.
struct ReadContext {
  const Request& request;
  std::vector<Unmodelled>& unmodelled;

  void leave_out(std::string setting, std::string why) const {
    unmodelled.push_back({std::move(setting), std::move(why)});
  }
};

/// What `spread` gets besides the draft.
struct WriteContext {
  const Strategy& strategy;
  const Model* model;
};

/// A setting to write.
struct OutputSetting {
  std::string key;
  Kind kind = Kind::kText;
  std::vector<std::string> words{};
  bool list = false;
};

struct Format {
  std::string_view name;
  std::string_view summary;
  std::string_view suffix;
  bool (*recognises)(std::string_view text);
  Result<std::vector<Setting>> (*cut)(std::string_view text, const std::string& name);
  std::string (*print)(const std::vector<OutputSetting>& settings);
  std::span<const Row> (*rows)();
  std::span<const Rule> (*rules)();
  std::string_view idle;  ///< Globs of keys without effect on a step.
  /// After reading: makes keys of ours from the notes, and checks settings that depend on each
  /// other.
  Status (*finish)(Draft& draft, const ReadContext& reading);
  /// Before writing: makes notes from keys of ours that no row has. Keys that the format cannot
  /// express stay in the draft.
  void (*spread)(Draft& draft, const WriteContext& writing);
  bool has_model = false;
  /// Keys of a strategy that such a file leaves to the program, each with where the program sets
  /// it: "strategy.micro_batch=per_device_train_batch_size;...".
  std::string_view elsewhere = {};
};

/// The draft that `settings` make. Settings that no row has go to `imported`. Defined in rows.cc.
Result<Draft> take(const Format& format, const std::vector<Setting>& settings, Imported& imported);
/// The settings that the rows make from the draft; keys that are written are removed from it.
/// Defined in rows.cc.
std::vector<OutputSetting> put(const Format& format, Draft& draft, const Draft& defaults);

/// "place: error: key: why\n   help: help"
Error fault(std::string_view place, std::string_view key, std::string_view why,
            std::string_view help = {}, Error::Code code = Error::Code::kInvalidInput);

/// The product, or a number larger than any count here if it overflows.
std::int64_t product(std::initializer_list<std::int64_t> factors);

/// Finds the ranks of the run, in the file's note "note.devices" or in the request, and divides
/// them.
/// \param model_ranks  number of ranks that hold one copy of the model.
/// \param sizes  what these ranks are, for messages: "tensor 8 x pipeline 4".
/// \return the data-parallel ranks; `kInvalidInput` if neither file nor request says how many ranks
///     there are, if they contradict each other, or if the ranks do not divide.
Result<std::int64_t> data_parallel(const Draft& draft, const ReadContext& reading,
                                   std::int64_t model_ranks, std::string_view sizes);
/// The key of a draft whose micro-batch size nobody says.
inline constexpr std::string_view kOpenMicroBatch = "note.open_micro_batch";
/// Gives the draft a micro-batch of one sequence and marks it as open (Imported::open).
void leave_micro_batch_open(Draft& draft);
/// Checks that `global_batch` is given and divides by data-parallel ranks x micro-batch; either of
/// these counts as 1 if it is missing.
Status fault_in_batch(const Draft& draft, const ReadContext& reading);

const Format& accelerate_format();
const Format& deepspeed_format();
const Format& megatron_format();
const Format& megatron_bridge_format();
const Format& nemo_format();
const Format& torchtitan_format();
std::span<const Format* const> all_formats();

/// settings_yaml.cc: YAML and JSON.
Result<std::vector<Setting>> cut_yaml(std::string_view text, const std::string& name);
/// Whether a line of the text, not indented, begins with "key:".
bool has_top_key(std::string_view text, std::string_view key);
std::string print_yaml(const std::vector<OutputSetting>& settings);
std::string print_json(const std::vector<OutputSetting>& settings);
/// settings_toml.cc
Result<std::vector<Setting>> cut_toml(std::string_view text, const std::string& name);
std::string print_toml(const std::vector<OutputSetting>& settings);
/// settings_words.cc: a command line, or a shell script that holds one. Variables are replaced by
/// the values that the script gives them (NAME=8, ${NAME}, ${NAME:-8}, $((A * B))).
Result<std::vector<Setting>> cut_words(std::string_view text, const std::string& name);
std::string print_words(const std::vector<OutputSetting>& settings);

/// megatron_family.cc: the command line of Megatron-LM and the YAML of NeMo and Megatron-Bridge
/// configure the same program. Their rows make these notes:
///     devices; layout; first_layers, last_layers, embedding_is_layer, loss_is_layer;
///     virtual_stages, layers_per_chunk; distributed_optimizer, fsdp2, fsdp2_keeps, megatron_fsdp,
///     sharding; granularity, method, recompute_layers, recompute_modules; fp16, bf16,
///     accumulate_fp32, fp8, fp8_recipe; precision_aware, main_gradients; context_sizes;
///     pipeline_before_data; blocking_transfers; attention_dropout, hidden_dropout; grouped_query,
///     query_groups, groups_alone; moe_frequency; positions.
Status finish_megatron(Draft& draft, const ReadContext& reading);
void spread_megatron(Draft& draft, const WriteContext& writing);

/// accelerate.cc: FSDP offloads parameters, gradients and states together (PyTorch:
/// CPUOffloadPolicy); the note "cpu_offload" stands for all three.
Status finish_fsdp_offload(Draft& draft);
void spread_fsdp_offload(Draft& draft, const Strategy& strategy);

}  // namespace foreshard::launch::internal
