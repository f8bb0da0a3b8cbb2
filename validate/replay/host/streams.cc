#include "validate/replay/host/streams.h"

#include <algorithm>
#include <string>
#include <variant>

namespace foreshard::replay::host {

Streams::Streams(const RankPlan& plan) : plan_(plan), streams_(plan.program->streams.size()) {
  const auto& instances = plan.expansion.instances;
  bodies_.reserve(instances.size());
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const auto& body = plan.task(i).body;
    bodies_.push_back(std::holds_alternative<Kernel>(body)                   ? Body::kKernel
                      : std::holds_alternative<program::Communication>(body) ? Body::kCommunication
                      : std::holds_alternative<program::Sync>(body)          ? Body::kSync
                                                                             : Body::kHostWork);
    if (instances[i].stream >= 0)
      streams_[static_cast<std::size_t>(instances[i].stream)].order.push_back(i);
  }
}

Result<StepTimes> Streams::run(Work& work, Watch& watch) {
  const std::size_t count = bodies_.size();
  finished_.assign(count, false);
  times_ = {};
  times_.start.assign(count, 0_s);
  times_.finish.assign(count, 0_s);
  issued_ = 0;
  left_ = count;
  for (Stream& stream : streams_) {
    stream.next = 0;
    stream.running = false;
  }
  report(watch);
  while (left_ > 0) {
    if (watch.stopped()) return Error{Error::Code::kIo, "stopped by the watchdog"};
    const bool issued = issue(work, watch);
    FORESHARD_ASSIGN(const auto started, start_communications(work, watch));
    FORESHARD_ASSIGN(const auto advanced, advance_communications(work, watch));
    if (issued || started || advanced || moving(work.now())) continue;
    if (const auto next = next_on_core()) {
      FORESHARD_TRY(run_on_core(*next, work, watch));
    } else if (left_ > 0) {
      work.idle();
    }
  }
  for (const Seconds finish : times_.finish) times_.total = std::max(times_.total, finish);
  return std::move(times_);
}

bool Streams::ready(std::size_t instance) const {
  return std::ranges::all_of(plan_.expansion.predecessors(instance), [&](std::int32_t before) {
    return finished_[static_cast<std::size_t>(before)];
  });
}

void Streams::finish(std::size_t instance, Work& work, Watch& watch) {
  times_.finish[instance] = work.now();
  finished_[instance] = true;
  --left_;
  work.finished(instance);
  report(watch);
}

bool Streams::issue(Work& work, Watch& watch) {
  const std::size_t before = issued_;
  while (issued_ < bodies_.size()) {
    if (bodies_[issued_] == Body::kHostWork) break;
    if (bodies_[issued_] == Body::kSync) {
      if (!ready(issued_)) break;
      times_.start[issued_] = work.now();
      finish(issued_, work, watch);
    }
    ++issued_;
  }
  return issued_ > before;
}

std::optional<std::size_t> Streams::next_on_core() const {
  std::optional<std::size_t> earliest;
  if (issued_ < bodies_.size() && bodies_[issued_] == Body::kHostWork) earliest = issued_;
  for (const Stream& stream : streams_) {
    if (stream.done() || stream.running) continue;
    const std::size_t head = stream.head();
    if (head < issued_ && bodies_[head] == Body::kKernel && (!earliest || head < *earliest) &&
        ready(head))
      earliest = head;
  }
  return earliest;
}

Result<bool> Streams::start_communications(Work& work, Watch& watch) {
  bool any = false;
  for (Stream& stream : streams_) {
    if (stream.done() || stream.running) continue;
    const std::size_t head = stream.head();
    if (head >= issued_ || bodies_[head] != Body::kCommunication || !ready(head)) continue;
    watch.issuing(static_cast<std::int64_t>(head));
    times_.start[head] = work.now();
    FORESHARD_TRY(work.starts(head));
    FORESHARD_TRY(work.begin(head));
    stream.running = true;
    stream.moved = times_.start[head];
    report(watch);
    any = true;
  }
  return any;
}

Result<bool> Streams::advance_communications(Work& work, Watch& watch) {
  bool any = false;
  for (Stream& stream : streams_) {
    if (!stream.running) continue;
    FORESHARD_ASSIGN(const auto progress, work.advance(stream.head()));
    if (progress == Progress::kStalled) continue;
    any = true;
    if (progress == Progress::kDone) {
      stream.running = false;
      finish(stream.order[stream.next++], work, watch);
    } else {
      stream.moved = work.now();
      watch.beat();
    }
  }
  return any;
}

bool Streams::moving(Seconds now) const {
  return std::ranges::any_of(streams_, [&](const Stream& stream) {
    return stream.running && now - stream.moved < kPatience;
  });
}

Status Streams::run_on_core(std::size_t instance, Work& work, Watch& watch) {
  watch.issuing(static_cast<std::int64_t>(instance));
  watch.at(static_cast<std::int64_t>(instance));
  times_.start[instance] = work.now();
  FORESHARD_TRY(work.starts(instance));
  if (bodies_[instance] == Body::kHostWork) {
    const Seconds end =
        times_.start[instance] + std::get<program::HostWork>(plan_.task(instance).body).time;
    while (work.now() < end && !watch.stopped()) continue;
    ++issued_;
  } else {
    work.compute(instance);
    ++streams_[static_cast<std::size_t>(plan_.expansion.instances[instance].stream)].next;
  }
  finish(instance, work, watch);
  return {};
}

// Reports the earliest unfinished instance: an issued one, or the one that delays issuing.
void Streams::report(Watch& watch) const {
  std::size_t earliest = issued_;
  for (const Stream& stream : streams_)
    if (!stream.done()) earliest = std::min(earliest, stream.head());
  if (earliest < bodies_.size()) watch.at(static_cast<std::int64_t>(earliest));
}

}  // namespace foreshard::replay::host
