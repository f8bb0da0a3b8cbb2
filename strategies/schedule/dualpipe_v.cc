#include <queue>

#include "strategies/schedule/internal/stages.h"
#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {
namespace {

// One stage; `behind` stages follow it. The steps are numbered as in the source.
class Stage {
 public:
  Stage(std::int32_t stage, std::int32_t behind, bool pairs, Passes& passes)
      : stage_(stage), behind_(behind), pairs_(pairs), passes_(passes) {}

  void run(std::int32_t micro_batches) {
    passes_.forward(0, 2 * behind_);            // 1: nF0
    for (std::int32_t i = 0; i <= stage_; ++i)  // 2: nF0F1
      forward_both();
    for (std::int32_t i = 0; i < behind_; ++i) {  // 3: nB1W1F1
      input(1);
      weight();
      passes_.forward(1);
    }
    const std::int32_t steady = micro_batches - 2 * (stage_ + 1 + behind_) + stage_ + 1;
    for (std::int32_t i = 0; i < steady; ++i) {  // 4: nF0B1F1B0
      // The last stage runs the first two passes one after the other: a smaller bubble.
      forward_and_backward(0, pairs_ && (i > 0 || behind_ > 0));
      forward_and_backward(1, pairs_);
    }
    for (std::int32_t i = 0; i < behind_; ++i) {  // 5: nB1F1B0
      passes_.backward(1);
      forward_and_backward(1, pairs_);
    }
    backward_both();                              // 6: nB1B0
    for (std::int32_t i = 0; i < behind_; ++i) {  // 7: nWB0
      weight();
      input(0);
    }
    while (!pending_.empty()) weight();  // 8: nW
  }

 private:
  void forward_both() {
    passes_.forward(0);
    passes_.forward(1);
  }
  // A forward pass through `chunk`, then a backward pass through the other one.
  void forward_and_backward(std::int32_t chunk, bool pair) {
    passes_.forward(chunk);
    passes_.backward(1 - chunk);
    if (pair) passes_.pair();
  }
  void input(std::int32_t chunk) {
    pending_.push({Direction::kBackward, chunk, passes_.backwards(chunk), PassPart::kWeight});
    passes_.input(chunk);
  }
  void weight() {
    if (pending_.empty()) return;
    passes_.slots.push_back(pending_.front());
    pending_.pop();
  }
  // Backward passes through both chunks: the first half whole, the second half input gradients
  // only.
  void backward_both() {
    const std::int32_t passes = stage_ + 1;
    for (std::int32_t i = 0; i < 2 * passes; ++i) {
      const std::int32_t chunk = 1 - i % 2;
      if (i >= passes) {
        input(chunk);
      } else {
        passes_.backward(chunk);
      }
    }
  }

  std::int32_t stage_;
  std::int32_t behind_;
  bool pairs_;
  Passes& passes_;
  std::queue<Slot> pending_;  // weight gradients to come
};

}  // namespace

Result<Table> dualpipe_v(const PipelineShape& shape) {
  if (shape.micro_batches < 2 * shape.stages)
    return fault_of("dualpipe-v", "needs at least " + std::to_string(2 * shape.stages) +
                                      " micro-batches for " + std::to_string(shape.stages) +
                                      " stages, got " + std::to_string(shape.micro_batches) +
                                      "; raise global_batch, or use zb-v");
  return each_stage(shape, [&](std::int32_t stage, Passes& passes) {
    Stage(stage, shape.stages - 1 - stage, shape.pairs, passes).run(shape.micro_batches);
  });
}

}  // namespace foreshard::schedule
