/// \file
/// Launch files: other frameworks' command lines and configuration files, which say how a run is
/// divided. They are read into our strategy (and model, where they describe one), and written from
/// a strategy:
///
///     auto run = launch::import_launch({.text = text, .name = "run.sh", .devices = 64});
///     run->strategy     // {"tensor_parallel", "8", "--tensor-model-parallel-size 8"}, ...
///     run->unmodelled   // what changes a step and is left out of the prediction
///     auto file = launch::export_launch("torchtitan", strategy, nullptr);
///
/// Each format is a table of rows (internal/formats.h): a key of the framework's, the key of ours,
/// and the words for values in both. To add a key: its row. To add a format: its .cc with its
/// table, a declaration in internal/formats.h, a line in formats.cc, a fuzz target;
/// tests/strategies/launch/round_trip_test.cc then holds it to the contract: `import_launch` reads
/// what `export_launch` writes as the same strategy, and a strategy that a format cannot express is
/// refused with the key that the format has no word for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::launch {

struct FormatInfo {
  std::string_view name;     ///< "megatron".
  std::string_view summary;  ///< One line.
};

/// All formats, in the order in which they are tried on a text.
std::vector<FormatInfo> formats();

struct Request {
  std::string_view text;
  std::string name;      ///< Name of the file in messages.
  std::string format{};  ///< A name of `formats()`; empty: recognised from the text.
  /// Ranks of the run, for files that do not state it: most leave it to their launcher.
  std::optional<std::int64_t> devices{};
  /// key -> value, for keys of ours that are set otherwise and need not follow from the file:
  /// {"strategy.micro_batch", "2"}.
  std::map<std::string, std::string> settled{};
};

/// One key of ours.
struct Line {
  std::string key;    ///< "tensor_parallel", "framework.gradient_reduction".
  std::string value;  ///< Value, as YAML.
  std::string from;   ///< The setting it follows from: "--tensor-model-parallel-size 8".
};

/// A setting that changes a step and that the prediction leaves out.
struct Unmodelled {
  std::string setting;  ///< "--tp-comm-overlap".
  std::string why;
};

struct Imported {
  std::string format;
  std::string name;  ///< Name of the file.
  std::vector<Line> strategy;
  std::vector<Line> model;             ///< Empty if the file describes none.
  std::vector<std::string> missing{};  ///< Required keys of a model that the file leaves out.
  /// Keys of the strategy that the file leaves to the program, with a stand-in among `strategy`: a
  /// study says them under `open` (sim/study/open_settings.h).
  std::vector<std::string> open{};
  std::vector<std::string> idle{};  ///< Settings without effect on a step: logs, paths.
  std::vector<Unmodelled> unmodelled{};
};

/// \return kInvalidInput, with file, line and key, for a word or number that the key does not take,
///     sizes that contradict each other, or a text that no format recognises; kUnsupported for a
///     setting that changes what is computed and that foreshard does not model.
Result<Imported> import_launch(const Request& request);

/// The lines as a mapping in braces, for the command line and for `yaml::Loader::read_text`.
std::string in_braces(const std::vector<Line>& lines);
/// The lines as a block, each with its `from` in a comment.
/// \param indent  number of blanks before each line.
std::string as_block(const std::vector<Line>& lines, std::size_t indent);
/// "taken: ...", "without meaning here: ...", "left out although it matters: ...": for people.
std::vector<std::string> report(const Imported& imported);

struct Exported {
  std::string text;
  std::string suffix;      ///< ".toml".
  bool has_model = false;  ///< Whether the text contains the model.
  /// Keys of the strategy that such files do not contain, each with where it has to be set instead:
  /// "micro_batch: 2 (the program's per_device_train_batch_size)".
  std::vector<std::string> elsewhere{};
};

/// \param model  is written too, if the format describes models; may be null.
/// \return kInvalidInput for a format that does not exist; kUnsupported, with each such key, if the
///     format cannot express the strategy.
Result<Exported> export_launch(std::string_view format, const Strategy& strategy,
                               const Model* model);

}  // namespace foreshard::launch
