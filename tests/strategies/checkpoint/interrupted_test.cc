// Conversions that end badly: killed, out of space, out of memory. They run in child processes.
#include <csignal>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/strategies/checkpoint/folders.h"
#include "tests/test.h"

#include "strategies/checkpoint/convert.h"
#include "strategies/checkpoint/files.h"

namespace foreshard::checkpoint {
namespace {

namespace fs = std::filesystem;

// What became of a child process.
struct Child {
  int status = 0;
  Bytes peak{};  ///< Resident memory.
};

template <class Work>
pid_t start(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  return child;
}
Child wait_for(pid_t child) {
  Child end;
  rusage usage{};
  EXPECT_EQ(::wait4(child, &end.status, 0, &usage), child);
  end.peak = static_cast<double>(usage.ru_maxrss) * 1_KiB;
  return end;
}

Result<ConversionPlan> plan_for(const fs::path& from, const std::vector<TensorEntry>& tensors) {
  FORESHARD_ASSIGN(auto source, open_source(from));
  return plan_conversion(std::move(source), {.tensors = tensors});
}

// Six matrices, split by column over 4 ranks, to be split by row over 6.
std::vector<TensorEntry> matrices(const std::vector<MeshAxis>& mesh,
                                  const std::vector<std::vector<Axis>>& dims, std::int64_t rows) {
  std::vector<TensorEntry> tensors;
  tensors.reserve(6);
  for (int i = 0; i < 6; ++i)
    tensors.push_back(
        tensor("w" + std::to_string(i), ElementType::kBf16, {rows, 96}, layout_of(mesh, dims)));
  return tensors;
}

TEST(Interrupted, KilledAtAnyMomentALaterRunFinishes) {
  const MemoryFolder folder;
  const fs::path from = folder.path() / "from";
  const fs::path to = folder.path() / "to";
  ASSERT_TRUE(
      write_synthetic(from, FileFormat::kSafetensors, matrices({{"tp", 4}}, {{}, {0}}, 9600), 9)
          .ok());
  const auto plan = value_of(plan_for(from, matrices({{"tp", 6}}, {{0}, {}}, 9600)));
  const auto before = shards_in(from);

  // One run counts its blocks. Then rounds end by their own hand between two blocks, or by that of
  // another process at any moment of some milliseconds: how many of those come too late is chance.
  std::int64_t blocks = 0;
  {
    value_of(convert(plan, to, {.max_memory = 1_MiB, .threads = 1, .progress = [&](std::int64_t) {
                                  ++blocks;
                                }}));
    fs::remove_all(to);
  }
  ASSERT_GT(blocks, 12);
  std::mt19937 random(4);
  int kills = 0;
  std::int64_t reused = 0;
  for (int round = 0; round < 60; ++round) {
    const bool by_itself = round % 2 == 0;
    const auto last = static_cast<std::int64_t>(random() % static_cast<unsigned>(blocks));
    const pid_t child = start([&] {
      std::int64_t seen = 0;
      const auto count = [&](std::int64_t) {
        if (by_itself && seen++ == last) ::raise(SIGKILL);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      };
      return convert(plan, to, {.max_memory = 1_MiB, .threads = 1, .progress = count}) ? 0 : 1;
    });
    if (!by_itself) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 10000));
      ::kill(child, SIGKILL);
    }
    const Child end = wait_for(child);
    if (WIFSIGNALED(end.status)) {
      ++kills;
      // There is no half a checkpoint: the name is only given to a complete one.
      if (fs::exists(to)) {
        ASSERT_EQ(contents_of(to, 9), "right");
      }
    }
    if (round % 3 != 2) continue;
    const auto result = value_of(convert(plan, to, {.max_memory = 1_MiB}));
    reused += result.files_reused;
    ASSERT_EQ(contents_of(to, 9), "right");
    ASSERT_FALSE(fs::exists(partial_of(to)));
    ASSERT_EQ(shards_in(from), before);
    fs::remove_all(to);
  }
  EXPECT_GE(kills, 20);
  EXPECT_GE(reused, 5);
}

TEST(Interrupted, DamagedRemainsAreMadeAgain) {
  const MemoryFolder folder;
  const fs::path from = folder.path() / "from";
  const fs::path to = folder.path() / "to";
  ASSERT_TRUE(
      write_synthetic(from, FileFormat::kSafetensors, matrices({{"tp", 4}}, {{}, {0}}, 1200), 9)
          .ok());
  const auto plan = value_of(plan_for(from, matrices({{"tp", 6}}, {{0}, {}}, 1200)));
  // The fourth file is never finished.
  const pid_t child = start([&] {
    std::int64_t files = 0;
    const auto progress = [&](std::int64_t bytes) {
      if (bytes != 0 && fs::exists(partial_of(to) / "rank-00003.safetensors")) ::raise(SIGKILL);
      ++files;
    };
    return convert(plan, to, {.threads = 1, .progress = progress}) ? 0 : 1;
  });
  ASSERT_TRUE(WIFSIGNALED(wait_for(child).status));
  ASSERT_TRUE(fs::exists(partial_of(to) / kJournalName));
  // One finished file is damaged, the last line of the journal torn.
  {
    std::fstream file(partial_of(to) / "rank-00000.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('?');
  }
  const fs::path journal = partial_of(to) / kJournalName;
  fs::resize_file(journal, fs::file_size(journal) - 5);

  const auto other = value_of(plan_for(from, matrices({{"tp", 3}}, {{0}, {}}, 1200)));
  EXPECT_THAT(message_of(convert(other, to)), HasSubstr("was left by another conversion"));

  const auto result = value_of(convert(plan, to));
  EXPECT_EQ(result.files, 6);
  EXPECT_EQ(result.files_reused, 1);  // of 0, 1 and 2: 0 is damaged, 2 has no whole line
  EXPECT_EQ(contents_of(to, 9), "right");
}

TEST(Interrupted, TwoRunsDoNotWriteToTheSamePlace) {
  const MemoryFolder folder;
  const fs::path from = folder.path() / "from";
  const fs::path to = folder.path() / "to";
  ASSERT_TRUE(
      write_synthetic(from, FileFormat::kSafetensors, matrices({{"tp", 4}}, {{}, {0}}, 120), 9)
          .ok());
  const auto plan = value_of(plan_for(from, matrices({{"tp", 6}}, {{0}, {}}, 120)));
  std::string second;
  value_of(convert(plan, to, {.threads = 1, .progress = [&](std::int64_t) {
                                if (!fs::exists(partial_of(to) / kJournalName) || !second.empty())
                                  return;
                                const auto refused = convert(plan, to, {.threads = 1});
                                second = refused ? "done" : refused.error().message;
                              }}));
  EXPECT_THAT(second, HasSubstr("another conversion is writing there"));
  EXPECT_EQ(contents_of(to, 9), "right");
}

// A limit on the size of files fails in the middle of a write, as a full disk does.
TEST(Interrupted, NoSpaceInTheMiddleLeavesTheTargetAsItWas) {
  const MemoryFolder folder;
  const fs::path from = folder.path() / "from";
  const fs::path to = folder.path() / "to";
  ASSERT_TRUE(
      write_synthetic(from, FileFormat::kSafetensors, matrices({{"tp", 4}}, {{}, {0}}, 1200), 9)
          .ok());
  const auto plan = value_of(plan_for(from, matrices({{"tp", 6}}, {{0}, {}}, 1200)));
  const pid_t child = start([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100000, 100000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto result = convert(plan, to);
    if (result || result.error().code != Error::Code::kIo) return 1;
    return result.error().message.find("cannot write: File too large") != std::string::npos ? 0 : 2;
  });
  const Child end = wait_for(child);
  EXPECT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0) << end.status;
  EXPECT_FALSE(fs::exists(to));
  EXPECT_FALSE(fs::exists(partial_of(to)));

  OutputFile file = value_of(OutputFile::create("/dev/full"));
  EXPECT_EQ(message_of(file.append("x")), "/dev/full: cannot write: No space left on device");
}

TEST(Interrupted, SaysBeforehandThatThereIsNoSpace) {
  const MemoryFolder folder;
  const fs::path from = folder.path() / "from";
  ASSERT_TRUE(
      write_synthetic(from, FileFormat::kSafetensors, matrices({{"tp", 4}}, {{}, {0}}, 12), 9)
          .ok());
  ConversionPlan huge = value_of(plan_for(from, matrices({{"tp", 6}}, {{0}, {}}, 12)));
  huge.files[0].bytes += std::int64_t{1} << 55;
  EXPECT_THAT(message_of(convert(huge, folder.path() / "to")),
              HasSubstr("no space: the conversion writes 32.0 PiB"));
  EXPECT_FALSE(fs::exists(partial_of(folder.path() / "to")));
}

// One tensor of 96 MiB through 2 MiB of buffers.
TEST(Interrupted, MemoryStaysWithinItsLimit) {
  const MemoryFolder folder;
  const fs::path from = folder.path() / "from";
  const Shape shape{4096, 12288};
  ASSERT_TRUE(write_synthetic(
                  from, FileFormat::kSafetensors,
                  {tensor("w", ElementType::kBf16, shape, layout_of({{"tp", 8}}, {{}, {0}}))}, 9)
                  .ok());
  const auto plan = value_of(
      plan_for(from, {tensor("w", ElementType::kBf16, shape, layout_of({{"tp", 2}}, {{}, {0}}))}));
  const Child idle = wait_for(start([] { return 0; }));
  const Child end = wait_for(start([&] {
    return convert(plan, folder.path() / "to", {.max_memory = 2_MiB, .threads = 2}) ? 0 : 1;
  }));
  EXPECT_EQ(end.status, 0);
  EXPECT_LE(end.peak, idle.peak + 2_MiB + 8_MiB);
  EXPECT_EQ(contents_of(folder.path() / "to", 9), "right");
}

}  // namespace
}  // namespace foreshard::checkpoint
