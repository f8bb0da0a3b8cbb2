// What if GPT-3 175B were trained with less tensor parallelism and more replicas?
#include <cstdio>
#include <foreshard/foreshard.h>
#include <iostream>

int main() {
  try {
    for (const int tensor : {8, 4, 2}) {
      foreshard::Study study{.file = "gpt3-175b-a100-1024"};  // or cluster, model and strategy
      study.set("strategy.tensor_parallel", tensor).set("strategy.data_parallel", 64 / tensor);
      const foreshard::Prediction prediction = foreshard::predict(study);
      std::printf("tensor %d: %.2f s (%.2f to %.2f), %.1f GB%s\n", tensor, prediction.step_seconds,
                  prediction.step_seconds_low, prediction.step_seconds_high,
                  static_cast<double>(prediction.memory.peak_bytes) / 1e9,
                  prediction.feasible ? "" : ": does not fit");
    }
  } catch (const foreshard::Failure& failure) {
    std::cerr << failure.what() << '\n';
    return 1;
  }
}
