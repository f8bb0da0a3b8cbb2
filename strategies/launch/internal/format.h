/// \file
/// What defines a format: how its texts are cut into settings, and a table that maps settings to
/// keys of ours. import.cc and export.cc run a format; to add one, write its .cc and list it in
/// formats.cc.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/launch/internal/draft.h"
#include "strategies/launch/launch.h"

namespace foreshard::launch::internal {

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
struct Reading {
  const Request& request;
  std::vector<Unmodelled>& unmodelled;

  void leave_out(std::string setting, std::string why) const {
    unmodelled.push_back({std::move(setting), std::move(why)});
  }
};

/// What `spread` gets besides the draft.
struct Writing {
  const Strategy& strategy;
  const Model* model;
};

/// A setting to write.
struct Written {
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
  std::string (*print)(const std::vector<Written>& settings);
  std::span<const Row> (*rows)();
  std::span<const Rule> (*rules)();
  std::string_view idle;  ///< Globs of keys without effect on a step.
  /// After reading: makes keys of ours from the notes, and checks settings that depend on each
  /// other.
  Status (*finish)(Draft& draft, const Reading& reading);
  /// Before writing: makes notes from keys of ours that no row has. Keys that the format cannot
  /// express stay in the draft.
  void (*spread)(Draft& draft, const Writing& writing);
  bool has_model = false;
  /// Keys of a strategy that such a file leaves to the program, each with where the program sets
  /// it: "strategy.micro_batch=per_device_train_batch_size;...".
  std::string_view elsewhere = {};
};

/// The draft that `settings` make. Settings that no row has go to `imported`. Defined in rows.cc.
Result<Draft> take(const Format& format, const std::vector<Setting>& settings, Imported& imported);
/// The settings that the rows make from the draft; keys that are written are removed from it.
/// Defined in rows.cc.
std::vector<Written> put(const Format& format, Draft& draft, const Draft& defaults);

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
Result<std::int64_t> data_parallel(const Draft& draft, const Reading& reading,
                                   std::int64_t model_ranks, std::string_view sizes);
/// The key of a draft whose micro-batch size nobody says.
inline constexpr std::string_view kOpenMicroBatch = "note.open_micro_batch";
/// Gives the draft a micro-batch of one sequence and marks it as open (Imported::open).
void leave_micro_batch_open(Draft& draft);
/// Checks that `global_batch` is given and divides by data-parallel ranks x micro-batch; either of
/// these counts as 1 if it is missing.
Status fault_in_batch(const Draft& draft, const Reading& reading);

}  // namespace foreshard::launch::internal
