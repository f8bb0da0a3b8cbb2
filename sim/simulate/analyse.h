/// \file
/// Reads results off an engine's timeline: where time goes, what memory is live, what the step
/// waited for; of a step that never ended, what failed and which tasks wait for which.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "sim/simulate/build.h"
#include "sim/simulate/prediction.h"

namespace foreshard::sim {

/// start_of and end_of all instances of a class, looked up once: code that reads many of them in
/// any order finds them in contiguous memory.
class ClassTimes {
 public:
  ClassTimes(const BuiltWorkload& built, const engine::Timeline& times, std::size_t device_class);

  Seconds start(std::size_t instance) const { return all_[instance].start; }
  Seconds end(std::size_t instance) const { return all_[instance].end; }

 private:
  struct Span {
    Seconds start;
    Seconds end;
  };
  std::vector<Span> all_;
};

/// Time of one class from 0 to `end`, each instant counted once (see Breakdown).
/// \param of_class  times of the class in `times`.
Breakdown breakdown_of(const program::Program& program, const BuiltWorkload& built,
                       const engine::Timeline& times, const ClassTimes& of_class,
                       std::size_t device_class, Seconds end);

/// Time of the kernels of one class, by ParameterGroup, without the optimizer's kernels.
std::array<Seconds, kParameterGroups> kernel_times_of(const program::Program& program,
                                                      const BuiltWorkload& built,
                                                      const ClassTimes& times,
                                                      std::size_t device_class);

/// \param curve_samples  samples of the curve of live bytes (memory::live_bytes).
MemoryUse memory_of(const program::Program& program, const program::Expander& expander,
                    const BuiltWorkload& built, const ClassTimes& times, std::size_t device_class,
                    std::size_t curve_samples);

/// What the operations of a step that were done sent over the links, by groups of like links: the
/// payload, as the algorithms send it, without what protocols add.
/// Not modelled: other ways that flows take while a failure lasts, and background traffic.
/// Cost: O(communicators x links of each + operations x groups that each crosses).
std::vector<LinkGroupUse> link_groups_of(const ClusterView& cluster,
                                         const program::Program& program,
                                         const Communicators& communicators,
                                         const CommunicatorForms& forms, const Folding& folding,
                                         const BuiltWorkload& built, const engine::Timeline& times);

/// The forms of all communications of all classes.
std::map<CommunicationKey, ChosenForm> forms_of(const program::Program& program,
                                                const Communicators& communicators,
                                                const CommunicatorForms& forms,
                                                const Folding& folding, const BuiltWorkload& built);

/// FLOPs of the kernels that were done, on all devices.
Flops executed_flops(const program::Program& program, const Folding& folding,
                     const BuiltWorkload& built, const engine::Timeline& times);

/// The chain of tasks that ends with the step, first task first. Each task starts when the previous
/// one ends; a gap is the host's launch of the later task.
std::vector<CriticalTask> critical_path_of(const program::Program& program,
                                           const BuiltWorkload& built,
                                           const engine::Timeline& times);

/// Every task of every class, class by class, in the order of issue.
std::vector<TimelineEntry> timeline_of(const program::Program& program, const BuiltWorkload& built,
                                       const engine::Timeline& times);

/// The latest finish of a class's instances.
Seconds finish_of(const BuiltWorkload& built, const engine::Timeline& times,
                  std::size_t device_class);

/// \pre !times.complete
Interruption interruption_of(const program::Program& program, const BuiltWorkload& built,
                             const engine::Timeline& times);

/// The timeline up to the instant after which nothing happened. Tasks that were running end then;
/// tasks that had not begun begin and end then.
engine::Timeline cut_off(const engine::Timeline& times);

}  // namespace foreshard::sim
