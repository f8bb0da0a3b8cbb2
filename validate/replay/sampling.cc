#include "validate/replay/sampling.h"

#include <chrono>
#include <utility>

namespace foreshard::replay {

Sampler::Sampler(std::function<measure::Reading()> read, Seconds period)
    : read_(std::move(read)), period_(period), thread_([this] { run(); }) {}

Sampler::~Sampler() {
  if (thread_.joinable()) stop();
}

void Sampler::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::duration<double>(period_ / 1_s),
                            [&] { return over_; })) {
    lock.unlock();
    measure::Reading reading = read_();
    lock.lock();
    readings_.push_back(std::move(reading));
  }
}

std::vector<measure::Reading> Sampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
  return std::move(readings_);
}

}  // namespace foreshard::replay
