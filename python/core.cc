// foreshard._core: runs a command of foreshard for the package foreshard, on a thread of its own
// and without the lock of the interpreter, while the calling thread looks for Ctrl-C.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "library/foreshard/foreshard.h"

namespace foreshard {
namespace {

namespace py = pybind11;

struct Progress {
  std::string what;
  std::int64_t done = 0;
  std::int64_t total = 0;

  bool operator==(const Progress&) const = default;
};

// A command that runs on another thread.
class Running {
 public:
  Running(const Words& words, const std::string& input)
      : thread_([this, words, input] { run_all(words, input); }) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (thread_.joinable()) thread_.join();
  }

  // Waits a moment. \return whether the command has ended.
  bool wait() {
    constexpr std::chrono::milliseconds kMoment(50);
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kMoment, [this] { return ended_; });
  }
  // First ends it with the results that it has, then at once.
  void stop() { stop_ = stop_ == Stop::kNo ? Stop::kFinish : Stop::kNow; }
  Progress progress() {
    const std::lock_guard lock(mutex_);
    return progress_;
  }
  // \pre wait() said that it has ended.
  Answer take() {
    thread_.join();
    if (fault_) std::rethrow_exception(fault_);
    return std::move(answer_);
  }

 private:
  void run_all(const Words& words, const std::string& input) {
    try {
      answer_ =
          run(words, {.stop = [this] { return stop_.load(); },
                      .progress =
                          [this](std::string_view what, std::int64_t done, std::int64_t total) {
                            const std::lock_guard lock(mutex_);
                            progress_ = {std::string(what), done, total};
                          },
                      .input = input,
                      .may_fork = false});
    } catch (...) {
      fault_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  std::atomic<Stop> stop_ = Stop::kNo;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  bool ended_ = false;
  Progress progress_{};
  Answer answer_{};
  std::exception_ptr fault_{};
  std::thread thread_;  // Last: it uses the others.
};

// What Python has to say while the command runs. The first exception is kept.
void attend(Running& running, const py::object& told, Progress& last,
            std::optional<py::error_already_set>& raised) {
  try {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    Progress now = running.progress();
    if (told.is_none() || now == last) return;
    last = std::move(now);
    told(last.what, last.done, last.total);
  } catch (py::error_already_set& exception) {
    if (!raised) raised.emplace(std::move(exception));
    running.stop();
  }
}

using Told = std::tuple<bool, std::string, std::string, int, int, std::string>;

std::tuple<int, std::string, std::vector<Told>> run_watched(const Words& words,
                                                            const std::string& input,
                                                            const py::object& progress) {
  Answer answer;
  std::optional<py::error_already_set> raised;
  {
    const py::gil_scoped_release released;
    Running running(words, input);
    Progress last;
    while (!running.wait()) {
      const py::gil_scoped_acquire acquired;
      attend(running, progress, last, raised);
    }
    answer = running.take();
  }
  constexpr int kInterrupted = 130;
  if (answer.code == kInterrupted && raised) throw std::move(*raised);
  std::vector<Told> messages;
  for (Message& one : answer.messages)
    messages.emplace_back(one.is_error, std::move(one.text), std::move(one.file), one.line,
                          one.column, std::move(one.remedy));
  return {answer.code, std::move(answer.text), std::move(messages)};
}

}  // namespace
}  // namespace foreshard

PYBIND11_MODULE(_core, module) {
  namespace py = pybind11;
  module.def("run", &foreshard::run_watched, py::arg("words"), py::arg("input") = "",
             py::arg("progress") = py::none());
}
