/// \file
/// What a format is: how its texts are cut into settings, and a table of what each setting is to
/// us.
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
  std::vector<std::string> words{};  ///< None: null, or a list of nothing.
  bool list = false;
  std::string place{};
};

enum class Kind : std::uint8_t {
  kCount,   ///< A whole number; also "5e8".
  kNumber,  ///< A number.
  kSwitch,  ///< true or false, in whatever words.
  kWord,    ///< One of the row's words.
  kText,    ///< Anything.
};

/// As `Row::otherwise`: the file is never silent on it.
inline constexpr std::string_view kAlways = "!";

/// A key of theirs that is a key of ours, or helps to make one.
struct Row {
  std::string_view theirs;
  std::string_view ours;  ///< "strategy.tensor_parallel", or "note.x" for `finish` and `spread`.
  Kind kind = Kind::kCount;
  /// "p2p=overlapped-all-gather a2a=all-to-all": of kWord and, where they are not true and false,
  /// kSwitch. A word of theirs with nothing behind the sign leaves our default.
  std::string_view words = {};
  /// Their value where the file is silent, if that is not our default. A note that is not in the
  /// file has none.
  std::string_view otherwise = {};
};

/// Keys that change a step, or what it computes, and that we do not model.
struct Rule {
  std::string_view keys;    ///< Globs, with blanks between.
  std::string_view unless;  ///< Words with which such a key changes nothing, beside false and 0.
  std::string_view why;
  bool refused = false;  ///< Otherwise it is left out, with a remark.
};

/// What `finish` sees beside the draft.
struct Reading {
  const Request& request;
  std::vector<Unmodelled>& unmodelled;

  void leave_out(std::string setting, std::string why) const {
    unmodelled.push_back({std::move(setting), std::move(why)});
  }
};

/// What `spread` sees beside the draft.
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
  std::string_view idle;  ///< Globs of keys without meaning for a step.
  /// Makes keys of ours of the notes, and checks what only several settings together say.
  Status (*finish)(Draft& draft, const Reading& reading);
  /// The other way round: makes notes of the keys of ours that no row has. What it cannot say it
  /// leaves there.
  void (*spread)(Draft& draft, const Writing& writing);
  bool has_model = false;
  /// Keys of a strategy that such a file leaves to the program, each with where it is said:
  /// "strategy.micro_batch=per_device_train_batch_size;...".
  std::string_view elsewhere = {};
};

/// The draft of what `settings` say.
Result<Draft> take(const Format& format, const std::vector<Setting>& settings, Imported& imported);
/// What the rows make of the draft; they take their keys out of it.
std::vector<Written> put(const Format& format, Draft& draft, const Draft& defaults);

/// "place: error: key: why\n   help: help"
Error fault(std::string_view place, std::string_view key, std::string_view why,
            std::string_view help = {}, Error::Code code = Error::Code::kInvalidInput);

/// The product, or what is more than all that is counted here.
std::int64_t product(std::initializer_list<std::int64_t> factors);

/// Finds the ranks of the run: the note "note.devices" of the file, or those of the request.
/// \param model_ranks  that hold one copy of the model, and what they are: "tensor 8 x pipeline 4".
/// \return the data-parallel ranks; `kInvalidInput` if nobody says how many ranks there are, file
///     and request contradict each other, or they do not divide.
Result<std::int64_t> data_parallel(const Draft& draft, const Reading& reading,
                                   std::int64_t model_ranks, std::string_view sizes);
/// Checks that `global_batch` divides, where all of it is known.
Status fault_in_batch(const Draft& draft, const Reading& reading);

}  // namespace foreshard::launch::internal
