/// \file
/// foreshard as a library: how long a training step takes and what memory and money it needs, which
/// strategy is the fastest that fits, how a tensor moves between two layouts, and every other
/// command of the program.
///
///     foreshard::Study study{.file = "gpt3-175b-a100-1024"};
///     study.set("strategy.tensor_parallel", 4).set("strategy.data_parallel", 16);
///     const foreshard::Prediction prediction = foreshard::predict(study);
///     // prediction.step_seconds, prediction.memory.peak_bytes, prediction.json, ...
///
/// A question is plain data in the words of the command line (docs/library.md). An answer is plain
/// data, with the JSON that the `foreshard` command prints: the library runs the very command. A
/// question that cannot be answered throws Failure. Functions keep nothing between calls and may be
/// called from several threads at once.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#ifndef FORESHARD_PACKAGE_CATALOGUE  // find_package(foreshard) defines it
#define FORESHARD_PACKAGE_CATALOGUE ""
#endif

namespace foreshard {
inline namespace v0 {  // may change; also keeps these names apart from those inside the library

/// A fault or a remark, as the program prints it.
struct Message {
  bool is_error = false;
  std::string text = {};    ///< All of it, for people.
  std::string file = {};    ///< File with the fault; empty if it is in none. The others are then 0.
  int line = 0;             ///< The first is 1.
  int column = 0;           ///< The first is 1.
  std::string remedy = {};  ///< The remedy; empty if none is known.
};

/// Why there is no answer. what() is for people: for a fault in a file it names file, line and
/// column, what is legal and a remedy, and all faults of a study at once.
class Failure : public std::runtime_error {
 public:
  enum class Kind {
    kInvalidInput,  ///< A file, a key or a value is wrong.
    kInfeasible,    ///< Well formed, but the cluster cannot run it: no route between two devices.
    kUnsupported,   ///< Right, but not implemented, not built in or not allowed here.
    kIo,            ///< A file or folder cannot be read or written.
  };
  Failure(Kind kind, const std::string& message, Message first = {})
      : std::runtime_error(message), kind_(kind), first_(std::move(first)) {}
  Kind kind() const { return kind_; }
  /// The first fault, with its place.
  const Message& first() const { return first_; }

 private:
  Kind kind_;
  Message first_;
};

/// A check of foreshard's own failed: a bug. The process goes on.
class InternalError : public std::logic_error {
  using std::logic_error::logic_error;
};

/// Hooks::stop ended a call that had no results to keep.
class Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("interrupted") {}
};

/// Whether a call is to end before it is done.
enum class Stop {
  kNo,
  kFinish,  ///< A search, a sweep and the like give what they have so far; others end at once.
  kNow,
};

/// How a call meets its surroundings.
struct Hooks {
  /// Called often and from any thread.
  std::function<Stop()> stop = {};
  /// Tells how far long work is; `total` is 0 if it is unknown. Called from any thread.
  std::function<void(std::string_view what, std::int64_t done, std::int64_t total)> progress = {};
  std::string input = {};  ///< The text that the file name "-" reads.
  /// Without it, what runs in another process (the engine simgrid, replay) is refused.
  bool may_fork = true;
};

/// A value that replaces one in the files, like `--set KEY=VALUE`.
struct Setting {
  std::string key;    ///< A path of keys and list positions: "strategy.tensor_parallel".
  std::string value;  ///< YAML: "8", "2 us", "[1, 2]".
};

/// A model, divided by a strategy over the devices of a cluster. Files are read only when a
/// function takes the study. Either a study's `file` is given, or cluster, model and strategy; a
/// part that is given besides `file` replaces the file's.
struct Study {
  std::string file = {};      ///< A YAML file, or a name of the catalogue.
  std::string cluster = {};   ///< A name of the catalogue, a file, or YAML in braces.
  std::string model = {};     ///< The same; or a config.json of Hugging Face; or an .onnx file.
  std::string strategy = {};  ///< Name, file or YAML: "{tensor_parallel: 8, global_batch: 64}".
  std::string communication = {};  ///< Name, file or YAML: numbers of the communication library.
  std::vector<Setting> settings = {};  ///< A later one wins.
  /// The folder of the catalogue. Empty: $FORESHARD_CONFIGS, else share/foreshard/configs beside
  /// the folder of the running program, else the package's catalogue.
  std::string catalogue = {};

  Study& set(std::string key, std::string value) {
    settings.push_back({std::move(key), std::move(value)});
    return *this;
  }
  template <std::integral T>
  Study& set(std::string key, T value) {
    if constexpr (std::is_same_v<T, bool>) {
      return set(std::move(key), std::string(value ? "true" : "false"));
    } else {
      return set(std::move(key), std::to_string(value));
    }
  }
};

enum class Engine {
  kFluid,    ///< Each collective is one activity.
  kSimgrid,  ///< The reference: SimGrid, with each message of a collective. Slow; forks.
};

struct PredictOptions {
  Engine engine = Engine::kFluid;
  std::string trace =
      {};  ///< File (.pftrace, .json) for a timeline to view in ui.perfetto.dev; empty: none.
};

/// The time of the device that finishes last, by use, in seconds; the parts sum to the step.
/// Communication counts only as far as computation does not hide it.
struct Breakdown {
  double compute = 0;
  double optimizer = 0;
  double tensor_communication = 0;
  double context_communication = 0;
  double expert_communication = 0;
  double pipeline_communication = 0;
  double data_communication = 0;
  double host = 0;
  double pipeline_bubble = 0;
};

/// Memory of the device with the least room left.
struct Memory {
  std::int64_t peak_bytes = 0;
  std::int64_t capacity_bytes = 0;  ///< All memory of the device.
  std::int64_t reserve_bytes = 0;   ///< Part of the capacity that is not for tensors.
};

/// The prediction of a step.
struct Prediction {
  std::string model;  ///< Description in words, like the next two.
  std::string cluster;
  std::string strategy;
  std::int64_t devices = 0;  ///< Devices that ranks run on.
  bool feasible = false;     ///< It fits in memory, and no failure interrupts it.
  /// Infinite if a failure interrupts the step. 8 of 10 measurements are expected between low and
  /// high.
  double step_seconds = 0;
  double step_seconds_low = 0;
  double step_seconds_high = 0;
  double samples_per_second = 0;  ///< Sequences, or the model's other samples.
  double tokens_per_second = 0;   ///< 0 where samples hold no tokens.
  double tflops_per_device = 0;   ///< Model FLOPs: recomputation does not count.
  double mfu = 0;                 ///< The same rate as a part of the device's peak.
  Breakdown breakdown;
  Memory memory;
  std::optional<double> usd_per_step = {};  ///< Nothing where the price of a device is not known.
  std::optional<double> joules_per_step =
      {};                                     ///< Nothing where the power of a device is not known.
  std::optional<double> training_steps = {};  ///< Steps of the study's `train`.
  std::vector<std::string> warnings = {};
  std::string json = {};  ///< Schema foreshard.prediction/1: all of this and more.
};

/// A strategy that does not fit in memory still has a prediction, with `feasible` false.
/// \param package  leave the default: the catalogue of the package that the caller was compiled
///     against.
/// \throws Failure, InternalError, Cancelled, as the other functions do
Prediction predict(const Study& study, const PredictOptions& options = {},
                   const char* package = FORESHARD_PACKAGE_CATALOGUE, const Hooks& hooks = {});

struct SearchOptions {
  std::string space = {};      ///< Values to try: a file or YAML in braces; empty: all.
  std::optional<int> level;    ///< Breadth, 0 to 3. Nothing: as in `space`, by default 2.
  std::int64_t top = 10;       ///< Strategies in the result.
  std::int64_t simulate = 20;  ///< Simulations of the best estimates.
  std::int64_t certify = 20;   ///< Further simulations, of strategies that might still be faster.
  std::int64_t threads = 2;    ///< Simulations at the same time.
  double budget_seconds = 0;   ///< Limit; the best so far is then the answer. 0: none.
};

struct Candidate {
  std::string strategy;  ///< Description in words.
  std::vector<Setting> settings =
      {};  ///< Settings that, added to the study's, select this strategy.
  bool fits = false;
  double step_seconds = 0;  ///< See Prediction::step_seconds.
  double step_seconds_low = 0;
  double step_seconds_high = 0;
  double mfu = 0;
  std::int64_t peak_bytes = 0;  ///< Peak of the device with the least room left.
  std::int64_t idle_devices = 0;
  std::optional<double> usd_per_step = {};
};

struct SearchResult {
  /// Simulated strategies that fit, the fastest first, then the others. Empty where nothing could
  /// be simulated.
  std::vector<Candidate> best = {};
  std::int64_t considered = 0;
  /// Lower bounds prove that no other strategy that was considered simulates faster.
  bool certified = false;
  /// How much faster another strategy could be at most, as a part of the first one's time;
  /// infinite if `best` is empty.
  double gap = 0;
  bool partial = false;  ///< `budget_seconds` or Hooks::stop ended the search.
  /// Nothing fits without offloading to host memory. Offloading was tried unasked; whether hosts
  /// have enough memory is not checked.
  bool needs_hosts = false;
  std::string json = {};  ///< Schema foreshard.search/1.
};

/// The fastest strategies of the study's model on its cluster. The search takes only batch,
/// precision and framework from the study's strategy; only `global_batch` must be given.
/// \throws Failure, also where no strategy of the space suits the model
SearchResult search(const Study& study, const SearchOptions& options = {},
                    const char* package = FORESHARD_PACKAGE_CATALOGUE, const Hooks& hooks = {});

/// A tensor that moves from one layout to another on a cluster, in the notation of docs/reshard.md.
struct Resharding {
  std::string tensor;   ///< Type and shape: "bf16[8192, 53248]".
  std::string from;     ///< Layout: mesh axes, ranks, axes per dimension: "tp=8 @0-7 [-, tp]".
  std::string to;       ///< Layout, in the same notation.
  std::string cluster;  ///< See Study::cluster; rank r is on device r.
  std::vector<Setting> settings = {};  ///< Settings of "cluster" and "communication".
  std::string catalogue = {};          ///< See Study::catalogue.
};

struct ReshardStep {
  std::string primitive;          ///< "all_gather", "transfer", "slice", ...
  std::vector<std::string> axes;  ///< Axes of the mesh after the step; none for a transfer.
  double seconds = 0;             ///< Time on links that nothing else uses.
  std::int64_t bytes = 0;         ///< Bytes that cross links, all ranks together.
};

struct ReshardPlan {
  std::string name;  ///< The steps in order: "all_gather(tp) + slice(dp)".
  std::vector<ReshardStep> steps = {};
  double seconds = 0;                           ///< Time of the plan, all ranks on shared links.
  std::optional<double> baseline_seconds = {};  ///< Time to gather everything and slice it.
  double lower_bound_seconds = 0;               ///< No plan is faster.
  std::string json = {};  ///< Schema foreshard.reshard/1, with the plans that were not chosen.
};

/// The fastest plan that is known.
/// \throws Failure
ReshardPlan reshard(const Resharding& resharding, const char* package = FORESHARD_PACKAGE_CATALOGUE,
                    const Hooks& hooks = {});

// --- Every command -------------------------------------------------------------------------------

/// Words of a command line, without the program's name and quotes: {"--set", "train=1B tokens"}.
using Words = std::vector<std::string>;

/// What a command answers.
struct Answer {
  /// 0: done; 3: nothing fits, or a goal is not met; 4: a limit that was asked for is exceeded; 5:
  /// partial. Only run() has 1: InternalError; 2: Failure; 130: Cancelled.
  int code = 0;
  std::string text = {};               ///< The program's stdout.
  std::vector<Message> messages = {};  ///< The program's stderr: remarks, and faults of run().
};

/// Runs any command: run({"topology", "show", "two-dgx-h100", "--format", "json"}).
/// \return also if the command fails; `messages` then says why.
Answer run(const Words& words, const Hooks& hooks = {},
           const char* package = FORESHARD_PACKAGE_CATALOGUE);

/// The study as words that any command takes which reads a study.
Words words_of(const Study& study);

// Each of the following runs one command with its further `options`, and answers in JSON if the
// command does.
// \throws Failure, InternalError, Cancelled

/// `study`: compares the points of a grid. \param sweep  a file or a catalogue name.
Answer sweep(const std::string& sweep, const Words& options = {}, const Hooks& hooks = {},
             const char* package = FORESHARD_PACKAGE_CATALOGUE);
/// `compare`: puts a study beside `other`, or beside itself with "--set-b".
Answer compare(const Study& study, const std::string& other = {}, const Words& options = {},
               const Hooks& hooks = {}, const char* package = FORESHARD_PACKAGE_CATALOGUE);
/// `advise`: the best single changes to a study ("--top"), each simulated.
Answer advise(const Study& study, const Words& options = {}, const Hooks& hooks = {},
              const char* package = FORESHARD_PACKAGE_CATALOGUE);
/// `explain`: says why a search chose what it chose. \param found  a file with SearchResult::json.
Answer explain(const std::string& found, const Words& options = {}, const Hooks& hooks = {},
               const char* package = FORESHARD_PACKAGE_CATALOGUE);
/// `elastic`: what a run on a machine that fails comes to. \param timeline  a file or a name.
Answer elastic(const std::string& timeline, const Words& options = {}, const Hooks& hooks = {},
               const char* package = FORESHARD_PACKAGE_CATALOGUE);
/// `replan`: the new strategy when devices fail, go or come ("--down", "--set-after").
Answer replan(const Study& study, const Words& options = {}, const Hooks& hooks = {},
              const char* package = FORESHARD_PACKAGE_CATALOGUE);
/// `topology`: {"show", "two-dgx-h100"}, {"check", ...}, {"import", ...}, {"collectives", ...}.
Answer topology(const Words& options, const Hooks& hooks = {},
                const char* package = FORESHARD_PACKAGE_CATALOGUE);
/// `calibrate`: fits numbers to measurements in files.
Answer calibrate(const Words& options, const Hooks& hooks = {},
                 const char* package = FORESHARD_PACKAGE_CATALOGUE);
/// `catalog`: {}, {"models"}, {"show", "H100-SXM"}.
Answer catalogue(const Words& options = {}, const Hooks& hooks = {},
                 const char* package = FORESHARD_PACKAGE_CATALOGUE);
/// `check`: what is understood of a file, with its defaults, as YAML.
Answer check(const std::string& file, const Words& options = {}, const Hooks& hooks = {},
             const char* package = FORESHARD_PACKAGE_CATALOGUE);
/// `import`: the strategy in another framework's launch file, as YAML.
Answer import_launch(const std::string& file, const Words& options = {}, const Hooks& hooks = {},
                     const char* package = FORESHARD_PACKAGE_CATALOGUE);
/// `export --as`: a study's strategy in the form of another framework, such as "megatron".
Answer export_launch(const Study& study, const std::string& framework, const Words& options = {},
                     const Hooks& hooks = {}, const char* package = FORESHARD_PACKAGE_CATALOGUE);
/// `schema`: the JSON Schema of a kind of file or of a result ("foreshard.prediction/1").
Answer schema(const std::string& kind, const char* package = FORESHARD_PACKAGE_CATALOGUE);

/// The version, such as "0.2.0".
std::string version();

}  // namespace v0
}  // namespace foreshard
