// Bubbles of pipeline schedules, with equal stages and transfers that cost nothing:
// step = ideal (1 + (p-1)/m), interleaved ideal (1 + (p-1)/(m v)), ZB-H1 ideal + (p-1)(F + B - W).
// Sources: schedules.h.

#include "tests/sim/simulate/small.h"
#include "tests/test.h"

#include "strategies/schedule/schedule.h"

namespace foreshard::sim {
namespace {

using program::BlockId;
using program::Call;
using program::Program;
using program::Task;

constexpr std::int64_t kForward = 1'000'000;  // elements: 4 us in all chunks of a stage together
constexpr std::int64_t kBackward = 2'000'000;

// One stage's calls, and the blocks that they need.
class Stage {
 public:
  Stage(Program& program, const schedule::PipelineShape& shape, std::int32_t stage)
      : program_(program), shape_(shape), stage_(stage) {}

  void add(const std::string& name) {
    program::Role role{
        .name = "stage " + std::to_string(stage_), .ranks = {stage_}, .calls = {}, .memory = {}};
    const auto table = value_of(schedule::table_of(name, shape_));
    const std::int32_t last = shape_.stages * shape_.chunks - 1;
    for (const schedule::Slot& slot : table[static_cast<std::size_t>(stage_)]) {
      const bool forward = slot.direction == Direction::kForward;
      const bool weights = slot.part == schedule::PassPart::kWeight;
      const std::int32_t piece = slot.chunk * shape_.stages + stage_;
      const std::int32_t step = forward ? 1 : -1;
      const std::int32_t source = forward ? 0 : last;
      const std::int32_t sink = last - source;
      const auto peer = [&](std::int32_t way) {
        return (stage_ + way + shape_.stages) % shape_.stages;
      };
      const auto call = [&](const Task& task, bool waits) {
        Call made{.block = block(task), .chunk = slot.chunk, .micro_batch = slot.micro_batch};
        if (waits) made.after = {{.call = static_cast<std::int32_t>(role.calls.size()) - 1}};
        role.calls.push_back(made);
      };
      if (piece != source && !weights)
        call(tagged(receive(peer(-step), 0_B, forward ? kFirst : kSecond), forward), false);
      const bool whole = slot.part == schedule::PassPart::kWhole;
      call(kernel(forward   ? "forward"
                  : whole   ? "backward"
                  : weights ? "weights"
                            : "inputs",
                  (forward ? kForward
                   : whole ? kBackward
                           : kBackward / 2) /
                      shape_.chunks),
           piece != source && !weights);
      if (piece != sink && !weights)
        call(tagged(send(peer(step), 0_B, forward ? kThird : kFourth), forward), true);
    }
    program_.roles.push_back(std::move(role));
  }

 private:
  static Task tagged(Task task, bool forward) {
    std::get<program::Communication>(task.body).tag = forward ? "forward" : "backward";
    return task;
  }

  BlockId block(const Task& task) {
    const program::Block wanted{
        "stage " + std::to_string(stage_) + " " + task.name + std::to_string(task.stream.value()),
        {task}};
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
      if (program_.blocks[b] == wanted) return BlockId(static_cast<std::int64_t>(b));
    }
    program_.blocks.push_back(wanted);
    return BlockId(static_cast<std::int64_t>(program_.blocks.size()) - 1);
  }

  Program& program_;
  schedule::PipelineShape shape_;
  std::int32_t stage_;
};

Prediction pipeline(const std::string& name, std::int32_t stages, std::int32_t chunks,
                    std::int32_t micro_batches) {
  Program program = every_rank(stages, {});
  program.blocks.clear();
  program.roles.clear();
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    Stage(program, {.stages = stages, .chunks = chunks, .micro_batches = micro_batches}, stage)
        .add(name);
  }
  return run(star(stages, 0_s), program);
}

Seconds ideal(std::int32_t micro_batches) {
  return (kernel_time(kForward) + kernel_time(kBackward)) * micro_batches;
}

TEST(Bubble, IsStagesLessOneOverMicroBatches) {
  for (const char* name : {"1f1b", "gpipe"}) {
    for (const std::int32_t p : {1, 2, 4, 8}) {
      for (const std::int32_t m : {1, 3, 8, 20}) {
        SCOPED_TRACE(std::string(name) + ", " + std::to_string(p) + " stages, " +
                     std::to_string(m) + " micro-batches");
        const auto prediction = pipeline(name, p, 1, m);
        EXPECT_NEAR(prediction.step / ideal(m), 1 + (p - 1.0) / m, 1e-9);
        // Every stage computes for the ideal time and waits for the rest.
        for (const DeviceClass& of : prediction.classes) {
          EXPECT_NEAR(of.breakdown.compute / ideal(m), 1, 1e-9);
          EXPECT_NEAR(of.breakdown.bubble / ideal(m), (p - 1.0) / m, 1e-9);
        }
      }
    }
  }
}

TEST(Bubble, OfAnInterleavedPipelineIsDividedByItsChunks) {
  for (const std::int32_t p : {2, 4, 8}) {
    for (const std::int32_t v : {2, 4}) {
      for (const std::int32_t m : {p, 2 * p, 4 * p}) {
        SCOPED_TRACE(std::to_string(p) + " stages x " + std::to_string(v) + ", " +
                     std::to_string(m) + " micro-batches");
        EXPECT_NEAR(pipeline("interleaved", p, v, m).step / ideal(m), 1 + (p - 1.0) / (m * v),
                    1e-9);
      }
    }
  }
}

// F = B = W: 1F1B waits for 3 (p-1) of them, ZB-H1 for (p-1).
TEST(Bubble, OfZeroBubbleH1IsAThirdOfThatOfOneFOneB) {
  for (const std::int32_t p : {2, 4, 8}) {
    for (const std::int32_t m : {p, 2 * p, 20}) {
      SCOPED_TRACE(std::to_string(p) + " stages, " + std::to_string(m) + " micro-batches");
      EXPECT_NEAR((pipeline("zb-h1", p, 1, m).step - ideal(m)) / kernel_time(kForward), p - 1.0,
                  1e-9 * m);
    }
  }
}

}  // namespace
}  // namespace foreshard::sim
