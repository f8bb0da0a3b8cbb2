/// \file
/// The watchdog: notices that the job does not proceed, finds the rank that caused it, and ends the
/// job.
///
/// It looks for three things: that a rank has ended (Store::ended), that another rank raised the
/// alarm, and that this rank's Watch did not beat for `patience` while it was in the executor. On
/// an alarm every rank publishes where it is, waits briefly for the others, and reports once
/// who waits for whom. The **culprit**: from what this rank waits in, one goes to a member that is
/// not in that operation, from there to whom that one waits for, and so on; it is who waits for
/// nobody (works, or stands still between steps), or does not answer. Where this comes back to a
/// rank, the ranks on the way wait for each other; where all members are in an operation, the
/// network or the library hangs.
///
/// **While ranks prepare** one may be late and nothing be wrong: it loads libraries from a slow
/// disk, while the others wait for it in a communicator. So ranks that prepare tell each other,
/// through the store, that somebody goes on, and none raises the alarm before all have been silent
/// for `patience`. What a rank does alone (Watch::alone) may take ten times as long; for as long it
/// counts as going on. Where rank 0 waits for longer than its patience it says for whom.
///
/// Source: the idea that ranks exchange where they are before they judge is that of PyTorch's NCCL
/// flight recorder ("Flight Recorder for Debugging Stuck Jobs", pytorch.org tutorials).
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

/// Where a rank was when the alarm was raised.
struct Place {
  std::string stage{};             ///< "preparing", "repeat 3", "between steps".
  std::string alone{};             ///< What it does for itself while it prepares (Watch::alone).
  std::int64_t communicator = -1;  ///< Its number; -1: it is in no communication.
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

/// What `rank` of `ranks` says, from what is known: "rank 0 waits in all_reduce grads ... of ranks
/// 0-3 for rank 2, which is in kernel ffn ...; rank 2 is the culprit".
/// \param places  of those that answered, itself included.
std::string judgement(std::int32_t rank, std::int32_t ranks,
                      const std::map<std::int32_t, Place>& places);

struct WatchdogOptions {
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  Seconds patience = 60_s;  ///< From the last beat to the end of the process.
  Seconds answers = 2_s;    ///< Of that, at most: how long others are waited for.
  /// Is told, from the watchdog's thread, for whom this rank waits while it prepares.
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

  /// The rank is in the executor from here on, in `stage`: without beats it hangs.
  void enter(std::string stage);
  /// Likewise, while all ranks prepare: see above.
  void enter_preparation(std::string stage);
  /// It is not: waits for others have a patience of their own. They are still told of.
  void leave();

 private:
  void run();
  Seconds answers() const;
  /// Whether nothing has been heard of for too long.
  bool raised(Seconds now);
  /// Of ranks that prepare: hears who goes on, and says so of this one.
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
  Seconds last_beat_{};  // Of the steady clock.
  Seconds last_news_{};  // Likewise: when somebody was heard of who goes on.

  // Of the watchdog's thread.
  std::int64_t news_ = 0;  // How many there were; each is said once, by whoever comes first.
  Seconds asked_{};
  std::uint64_t told_beats_ = 0;  // Of this rank, when it last had news of itself.
  Seconds noted_{};

  std::thread thread_;
};

/// Before a process ends by itself because of a failure: says so, and waits (a moment at most)
/// until the other ranks have had their say, too, because launchers kill the rest when the first
/// one ends.
void last_words(Store& store, std::int32_t rank, std::int32_t ranks, Seconds patience);

}  // namespace foreshard::replay
