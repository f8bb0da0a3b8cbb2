// foreshard-replay with an executor that computes nothing: kernels sleep, communications wait for
// their members through the store. FAKE_DEVICE is its device. What goes wrong is said in
// FAKE_FAULT, "KIND:RANK":
//
//     memory:2    rank 2 runs out of memory when it prepares
//     wrong:2     rank 2 receives wrong numbers
//     late:2      rank 2 loads for 2.5 s when it prepares; its peers wait for it there
//     stuck:2     rank 2 prepares for ever and says nothing; likewise
//     deaf:2      (with deaf:-1 all) rank 2 waits for its peers whatever it is told, as inside NCCL
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include "validate/replay/run.h"

namespace foreshard::replay {
namespace {

using Clock = std::chrono::steady_clock;

class FakeExecutor : public Executor {
 public:
  FakeExecutor(Store& store, std::string fault) : store_(store), fault_(std::move(fault)) {}

  Status prepare(const RankPlan& plan, Watch& watch) override {
    plan_ = &plan;
    watch.beat();
    if (fault("memory"))
      return Error{Error::Code::kInfeasible,
                   "out of memory for 'gemm': 3.00 GiB asked for, 1.00 GiB free"};
    if (fault("late")) {
      watch.alone("loads a library");
      std::this_thread::sleep_for(std::chrono::milliseconds(2500));
      watch.alone(nullptr);
    }
    while (fault("stuck") && !watch.stopped())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (!fault_.empty() && !meet("prepared", {}, watch)) return stopped();
    return {};
  }

  Result<StepTimes> step(Watch& watch) override {
    ++steps_;
    StepTimes times;
    if (!meet("begin", {}, watch)) return stopped();
    const auto begin = Clock::now();
    const auto since = [&] {
      return Seconds::from_base(std::chrono::duration<double>(Clock::now() - begin).count());
    };
    for (std::size_t i = 0; i < plan_->operations.size(); ++i) {
      const auto instance = static_cast<std::int64_t>(i);
      watch.issuing(instance);
      watch.at(instance);
      times.start.push_back(since());
      const Operation& operation = plan_->operations[i];
      if (operation.communicator < 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      } else {
        const auto& communicator =
            plan_->communicators[static_cast<std::size_t>(operation.communicator)];
        if (!meet(std::to_string(communicator.number) + "/" + std::to_string(i),
                  communicator.members, watch))
          return stopped();
      }
      times.finish.push_back(since());
    }
    times.total = since();
    return times;
  }

  Result<Verification> verify(Watch& watch) override {
    watch.beat();
    Verification found{.operations = 3, .elements = 12, .faults = {}};
    if (fault("wrong"))
      found.faults.push_back("all_reduce grads #0 on rank " + std::to_string(plan_->rank) +
                             ": element 17 is 5, not 6");
    return found;
  }

  measure::Machine machine() const override {
    return {.name = "fake", .facts = {{"processor", "none"}}};
  }
  measure::Providers providers() const override { return {"none", "none", "none"}; }
  std::string device() const override { return "fake " + std::to_string(plan_->rank); }
  std::string sole_device() const override {
    const char* device = std::getenv("FAKE_DEVICE");
    return device ? device : "";
  }
  Bytes peak_memory() const override { return 1_MiB; }
  Bytes scratch() const override { return 2_MiB; }
  measure::Reading reading() const override { return {.celsius = 20.0}; }

 private:
  static Error stopped() { return {Error::Code::kIo, "stopped"}; }
  bool fault(const std::string& kind) const {
    return fault_ == kind + ":" + std::to_string(plan_->rank) || fault_ == kind + ":-1";
  }

  // False where it was told to stop. The members run the same tasks, so a task's number is enough.
  bool meet(const std::string& name, std::vector<std::int32_t> members, Watch& watch) {
    const std::string prefix = "fake/" + std::to_string(steps_) + "/" + name + "/";
    if (members.empty())
      for (std::int32_t rank = 0; rank < plan_->program->ranks(); ++rank) members.push_back(rank);
    if (!store_.set(prefix + std::to_string(plan_->rank), "").ok()) return false;
    for (const std::int32_t member : members) {
      for (;;) {
        const auto there = store_.look(prefix + std::to_string(member));
        if (there && *there) break;
        if (watch.stopped() && !fault("deaf")) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    watch.beat();
    return true;
  }

  Store& store_;
  std::string fault_;
  const RankPlan* plan_ = nullptr;
  int steps_ = 0;
};

Result<std::unique_ptr<Executor>> make(const ExecutorOptions&, Store& store) {
  const char* fault = std::getenv("FAKE_FAULT");
  return std::unique_ptr<Executor>(std::make_unique<FakeExecutor>(store, fault ? fault : ""));
}

Result<std::unique_ptr<Executor>> no_gpu(const ExecutorOptions&, Store&) {
  return Error{Error::Code::kUnsupported, "no GPU: this is a test"};
}

}  // namespace
}  // namespace foreshard::replay

int main(int argc, char** argv) {
  return foreshard::replay::run(
      argc, argv, {.host = foreshard::replay::make, .gpu = foreshard::replay::no_gpu});
}
