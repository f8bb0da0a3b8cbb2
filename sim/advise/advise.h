/// \file
/// Advice about a study: the single changes that make its step faster. Every change is simulated:
/// `foreshard simulate` with the settings of a change gives the same figures.
///
///     const auto advice = advise::advise(study, reload, {.top = 3});
///     advice->now.step               // 14.1 s
///     advice->changes[0].words       // "recompute: selective instead of full"
///     advice->changes[0].settings    // {"strategy.recompute", "selective"}
///     advice->changes[0].after.step  // 11.3 s
///     advice->changes[0].gain        // 0.2
///
/// A change keeps the model, the global batch, the precision and the optimizer, and with them what
/// the training computes. One table lists the ideas (internal/ideas.h); an idea proposes
/// candidates. A candidate is left out if the study's model, batch or devices do not allow it
/// (faults_in), if the framework cannot run it (strategies/launch/abilities.h), or if it does not
/// fit in memory with the study's margin (MemoryMargin). Where the study itself leaves less than
/// the margin, changes that need no more memory than it does count as fitting, and are marked
/// tight.
///
/// Changes of hardware are apart: their time does not say what the hardware costs to get.
///
/// Not modelled: two changes together (`foreshard search` finds the best strategy); the work of a
/// change itself, such as converting a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/yaml/loader.h"

#include "sim/study/evidence.h"
#include "sim/study/study.h"

namespace foreshard::advise {

/// A simulated step.
struct Figures {
  Seconds step;  ///< Infinite if a failure ends the step.
  Seconds low;   ///< Interval in which 8 of 10 measurements are expected.
  Seconds high;
  Bytes peak;      ///< Peak memory of the device with the least room.
  Bytes capacity;  ///< Memory that this device has for tensors.
  bool fits = true;
  bool tight = false;          ///< It leaves less than the study's memory margin.
  std::optional<Dollars> usd;  ///< Cost of a step; nothing if a price is not known.
  study::Unmeasured unmeasured{};
};

struct Change {
  std::string idea{};   ///< The idea that proposed it: "recomputation".
  std::string words{};  ///< "recompute: selective instead of full".
  /// Settings that, after the study's own, make the change: "strategy.recompute" = "selective".
  std::vector<yaml::Override> settings{};
  Figures after{};
  /// The part of the study's step that it saves, below 0 if it takes longer; nothing if that step
  /// never ends.
  std::optional<double> gain{};
};

/// What became of the candidates. Each is counted once.
struct Counts {
  std::int64_t faster = 0;  ///< They fit, and their step is shorter.
  /// Their step is no shorter: simulated ones that fit, and those whose lower bound says so
  /// (sim/search/estimate.h), whether they fit or not.
  std::int64_t slower = 0;
  std::int64_t too_large = 0;
  std::int64_t framework = 0;    ///< The framework cannot run them.
  std::int64_t impossible = 0;   ///< Model, batch, schedule or devices do not allow them.
  std::int64_t interrupted = 0;  ///< A failure interrupts their step, which never ends.
  std::int64_t not_reached = 0;

  std::int64_t candidates() const {
    return faster + slower + too_large + framework + impossible + interrupted + not_reached;
  }
};

struct Advice {
  std::string study{};  ///< LoadedStudy::name.
  std::string model{};
  std::string cluster{};
  std::string strategy{};  ///< The study's strategy in words.
  std::string framework{};
  Figures now{};
  /// Changes that somebody can make on the same machine and that are faster (where the study does
  /// not fit: all that fit), the shortest step first.
  std::vector<Change> changes{};
  std::vector<Change> hardware{};  ///< The same for other devices and links.
  Counts counts{};                 ///< Candidates that keep the machine.
  Counts hardware_counts{};
  double memory_margin = 0;     ///< The part of each device's memory that stays free.
  std::string margin_source{};  ///< The source of the margin, as in study::MemoryMargin.
  bool partial = false;         ///< It was stopped before all candidates were simulated.
};

/// Loads the study anew with these settings after its own. It is called from any thread.
using Reload =
    std::function<Result<study::LoadedStudy>(const std::vector<yaml::Override>& settings)>;

struct AdviceOptions {
  std::int64_t top = 3;      ///< Changes to list, and as many of hardware.
  std::int64_t threads = 2;  ///< Simulations at the same time; the result does not depend on it.
  bool hardware = true;      ///< Whether changes of hardware are tried.
  /// Where nodes with other devices are looked for; empty: nowhere.
  std::vector<std::filesystem::path> catalogue = {};
  /// Most memory for the tasks of all simulations at the same time.
  Bytes max_memory = Bytes::from_base(std::numeric_limits<double>::infinity());
  /// Called between simulations, from any thread; true ends the work with what is known. May be
  /// empty.
  std::function<bool()> stop = {};
  /// Called from any thread after each simulation. May be empty.
  std::function<void(std::int64_t done, std::int64_t all)> progress = {};
};

/// \return the errors of run_study for the study itself; what is wrong with a candidate is counted.
Result<Advice> advise(const study::LoadedStudy& study, const Reload& reload,
                      const AdviceOptions& options);

}  // namespace foreshard::advise
