/// \file
/// The watchdog: it notices that the job makes no progress, finds the rank that caused this, and
/// ends the job.
///
/// It acts on three signs: a rank has ended (Store::ended), another rank raised the alarm, or this
/// rank's Watch did not beat for `patience` while the rank was in the executor. On an alarm every
/// rank publishes its position, waits briefly for the positions of the others, and reports once who
/// waits for whom.
///
/// The **culprit** is found by following the waits: from the operation in which this rank waits to
/// a member that is not in that operation, from there to the rank for which that member waits, and
/// so on. The culprit is the rank that waits for nobody (it works, or is between steps) or does not
/// answer. If the chain comes back to a rank, the ranks on it wait for each other. If all members
/// are in the operation, the network or the library hangs.
///
/// **While ranks prepare**, a rank may be late without a fault: it loads libraries from a slow disk
/// while the others wait for it in a communicator. Ranks that prepare therefore tell each other
/// through the store that somebody makes progress, and no rank raises the alarm before all have
/// been silent for `patience`. Work that a rank does alone (Watch::alone) may take ten times as
/// long and counts as progress during that time. If rank 0 waits for longer than its patience, it
/// says which rank was last heard of (WatchdogOptions::tell).
///
/// Source: PyTorch's NCCL flight recorder also exchanges the ranks' positions before it judges
/// ("Flight Recorder for Debugging Stuck Jobs", pytorch.org tutorials).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "validate/replay/plan.h"
#include "validate/replay/store.h"
#include "validate/replay/watch.h"

namespace foreshard::replay {

/// Position of a rank when the alarm was raised.
struct Place {
  std::string stage{};             ///< "preparing", "repeat 3", "between steps".
  std::string alone{};             ///< Work that it does alone while it prepares (Watch::alone).
  std::int64_t communicator = -1;  ///< Number of the communicator; -1: not in a communication.
  std::int64_t ordinal = 0;
  std::string tag{};
  std::vector<std::int32_t> members{};
  std::string what{};  ///< describe(); empty outside a step.

  bool communicates() const { return communicator >= 0; }
  bool same_operation(const Place& other) const {
    return communicator == other.communicator && ordinal == other.ordinal && tag == other.tag &&
           stage == other.stage;
  }
  bool operator==(const Place&) const = default;
};
/// `instance` < 0: outside a step.
Place place_of(const RankPlan& plan, std::int64_t instance, std::string stage);
std::string to_text(const Place& place);
std::optional<Place> place_from_text(std::string_view text);

/// The report of `rank` (of `ranks`): "rank 0 waits in all_reduce grads ... of ranks 0-3 for rank
/// 2, which is in kernel ffn ...; rank 2 is the culprit".
/// \param places  rank -> position, for the ranks that answered, `rank` included.
std::string judgement(std::int32_t rank, std::int32_t ranks,
                      const std::map<std::int32_t, Place>& places);

struct WatchdogOptions {
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  Seconds patience = 60_s;  ///< Time from the last beat to the end of the process.
  Seconds answers = 2_s;    ///< Most of that time spent on waiting for the others' positions.
  /// Called from the watchdog's thread while this rank waits long in preparation.
  std::function<void(const std::string& note)> tell{};
};

class Watchdog {
 public:
  /// All references must outlive it.
  /// \param end  is called from the watchdog's thread, at most once, with the message; it should
  ///     end the process.
  Watchdog(const WatchdogOptions& options, const RankPlan& plan, Store& store, Watch& watch,
           std::function<void(const std::string& message)> end);
  /// Stops watching.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From here on the rank is in the executor, in `stage`: without beats it counts as hanging.
  void enter(std::string stage);
  /// Same as `enter`, with the rules for ranks that prepare (see above).
  void enter_preparation(std::string stage);
  /// From here on the rank is outside the executor, where waits have their own patience. The
  /// watchdog still watches for other ranks' ends and alarms.
  void leave();

 private:
  void run();
  Seconds answers() const;
  /// Whether this rank has to raise the alarm: there was no beat for too long.
  bool raised(Seconds now);
  /// While ranks prepare: reads which ranks make progress, and reports this rank's own.
  void exchange_news(Seconds now);
  std::string diagnosis();

  WatchdogOptions options_;
  const RankPlan& plan_;
  Store& store_;
  Watch& watch_;
  std::function<void(const std::string&)> end_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  bool inside_ = false;
  bool preparing_ = false;
  std::string stage_ = "starting";
  std::uint64_t last_beats_ = 0;
  Seconds last_beat_{};  // Time on the steady clock.
  Seconds last_news_{};  // Time of the last report that some rank makes progress.

  // Used by the watchdog's thread only.
  std::int64_t news_ = 0;         // Reports of progress so far; the number in the next one's key.
  Seconds asked_{};               // Time of the last look for reports.
  std::uint64_t told_beats_ = 0;  // This rank's beats when it last reported progress.
  Seconds noted_{};               // Time of the last call of `tell`.

  std::thread thread_;
};

/// To be called before a process ends because of a failure. It tells the store that this rank has
/// reported, and waits, for `patience` at most, until the other ranks have reported too, because
/// launchers kill all ranks when the first one ends.
void last_words(Store& store, std::int32_t rank, std::int32_t ranks, Seconds patience);

}  // namespace foreshard::replay
