/// \file
/// Starts the ranks of a job as a launcher would, and says what came of each.
#pragma once

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/base/temporary_folder.h"

namespace foreshard::replay {

struct RankOutcome {
  int code = -1;  ///< 128 + n for signal n, as a shell says it.
  std::string out{};
  std::string err{};
};

class Job {
 public:
  using Words = std::vector<std::string>;
  using Variables = std::map<std::string, std::string>;

  /// Kills what has not ended.
  ~Job() {
    for (const pid_t rank : ranks_) {
      if (rank <= 0) continue;
      ::kill(rank, SIGKILL);
      ::waitpid(rank, nullptr, 0);
    }
  }
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// The next rank.
  pid_t start(const std::string& program, const Words& arguments, const Variables& variables) {
    const std::string number = std::to_string(ranks_.size());
    const auto out = path("out" + number), err = path("err" + number);
    const pid_t child = ::fork();
    if (child == 0) {
      redirect("/dev/null", O_RDONLY, STDIN_FILENO);
      redirect(out, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
      redirect(err, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
      for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
      std::vector<char*> words{const_cast<char*>(program.c_str())};
      for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
      words.push_back(nullptr);
      ::execv(program.c_str(), words.data());
      ::_exit(127);
    }
    ranks_.push_back(child);
    return child;
  }

  void signal(std::size_t rank, int number) const { ::kill(ranks_.at(rank), number); }

  /// Of all ranks, in order. Those that do not end within `patience` are killed (code 137).
  std::vector<RankOutcome> wait(std::chrono::seconds patience = std::chrono::seconds(20)) {
    const auto end = std::chrono::steady_clock::now() + patience;
    std::vector<RankOutcome> outcomes(ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      int status = 0;
      while (::waitpid(ranks_[rank], &status, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() >= end) ::kill(ranks_[rank], SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      ranks_[rank] = 0;
      const std::string number = std::to_string(rank);
      outcomes[rank] = {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                        text_of(path("out" + number)), text_of(path("err" + number))};
    }
    return outcomes;
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  static void redirect(const std::string& path, int flags, int to) {
    const int fd = ::open(path.c_str(), flags, 0600);
    if (fd < 0 || ::dup2(fd, to) < 0) ::_exit(126);
    ::close(fd);
  }

  TemporaryFolder folder_;
  std::vector<pid_t> ranks_;
};

}  // namespace foreshard::replay
