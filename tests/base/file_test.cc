#include "base/file.h"

#include <csignal>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/base/temporary_folder.h"
#include "tests/seeds.h"
#include "tests/test.h"

namespace foreshard {
namespace {
namespace fs = std::filesystem;

TEST(File, WritesAndReadsBack) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.bin";
  const std::string bytes("zero \0 and \xFF", 12);
  ASSERT_TRUE(write_file(path, "old").ok());
  ASSERT_TRUE(write_file(path, bytes).ok());
  EXPECT_EQ(value_of(read_file(path, 1_MB)), bytes);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1)
      << "nothing is left aside";
}

TEST(File, NamesWhatCannotBeRead) {
  const TemporaryFolder folder;
  const fs::path big = folder.write("big", std::string(5000, 'x'));
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto fault = [](const fs::path& path) { return message_of(read_file(path, 4096_B)); };
  EXPECT_THAT(fault(folder.path() / "absent"), HasSubstr("absent: cannot open: No such file"));
  EXPECT_THAT(fault(folder.path()), HasSubstr("is a directory, not a file"));
  EXPECT_THAT(fault(pipe), HasSubstr("is a pipe"));
  EXPECT_THAT(fault(big), HasSubstr("is larger than the limit of 4.00 KiB; FORESHARD_LIMITS=2"));
  EXPECT_THAT(fault("/dev/zero"), HasSubstr("is a device, not a file"));
  const fs::path holes = folder.write("holes", "x");
  fs::resize_file(holes, 20'000'000);
  EXPECT_THAT(message_of(read_file(holes, 1_GB)), HasSubstr("is a sparse file of 19.1 MiB"));
}

// A link stays a link; what it leads to is replaced.
TEST(File, WritesThroughLinks) {
  const TemporaryFolder folder;
  const fs::path real = folder.write("real", "old");
  const fs::path link = folder.path() / "link";
  fs::create_symlink(real, link);
  ASSERT_TRUE(write_file(link, "new").ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(*read_file(real, 4096_B), "new");
}

// A pipe or a device is there to be written to, not to be replaced by a file.
TEST(File, WritesToSpecialFiles) {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(write_file(pipe, "through").ok());
  char bytes[16] = {};
  EXPECT_EQ(::read(reader, bytes, sizeof bytes), 7);
  EXPECT_EQ(std::string(bytes), "through");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(File, CreatesWhatALinkLeadsTo) {
  const TemporaryFolder folder;
  const fs::path link = folder.path() / "link";
  fs::create_symlink("real", link);
  ASSERT_TRUE(write_file(link, "new").ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(*read_file(folder.path() / "real", 4096_B), "new");
}

// As a shell's `>>`: /dev/stdout is this process's file, not one to be replaced.
TEST(File, WritesToOpenFiles) {
  const TemporaryFolder folder;
  const fs::path real = folder.write("real", "before ");
  const int fd = ::open(real.c_str(), O_WRONLY | O_APPEND);
  ASSERT_TRUE(write_file("/dev/fd/" + std::to_string(fd), "and after").ok());
  EXPECT_EQ(::write(fd, "!", 1), 1);
  ::close(fd);
  EXPECT_EQ(*read_file(real, 4096_B), "before and after!");
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(File, KeepsPermissions) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a", "old");
  for (const mode_t mode : {0600, 0640, 0444}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    ASSERT_TRUE(write_file(path, "new").ok());
    EXPECT_EQ(mode_of(path), mode);
  }
  const mode_t mask = ::umask(027);
  ASSERT_TRUE(write_file(folder.path() / "b", "new").ok());
  ::umask(mask);
  EXPECT_EQ(mode_of(folder.path() / "b"), 0640);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

// What another process has left or writes there, on file systems that know no files without names,
// has the name of the file and ".new".
TEST(File, TakesOverWhatAKilledProcessLeft) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a", "old");
  folder.write("a.new", "half of i");
  ASSERT_TRUE(write_file(path, "new").ok());
  EXPECT_EQ(*read_file(path, 4096_B), "new");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(File, LeavesNothingOfAnIncompleteFile) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a", "old");
  {
    auto file = value_of(NewFile::begin(path));
    ASSERT_TRUE(file.append("half").ok());
    EXPECT_EQ(*read_file(path, 4096_B), "old");
  }
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

// A child writes again and again; whenever it is ended, the file is one of those that it wrote, and
// nothing lies beside it.
TEST(File, IsWholeWheneverASignalComes) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a";
  const std::string one(200'000, '1'), other(300'000, '2');
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL})
    for (int i = 0; i < seeds(8, 100); ++i) {
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0)
        for (;;)
          if (!write_file(path, one).ok() || !write_file(path, other).ok()) ::_exit(1);
      std::this_thread::sleep_for(std::chrono::microseconds(3000 + 997 * i));
      ::kill(child, signal);
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal);
      if (!fs::exists(path)) continue;
      const std::string found = *read_file(path, 1_MB);
      EXPECT_TRUE(found == one || found == other);
      if (signal != SIGKILL) {
        EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
      }
    }
}

// In a process of its own: what it has read stays read.
TEST(File, IsNotWrittenOntoWhatWasRead) {
  const TemporaryFolder folder;
  const fs::path input = folder.write("input", "old"), result = folder.write("result", "old");
  const fs::path link = folder.path() / "link", name = folder.path() / "name";
  fs::create_symlink(input, link);
  fs::create_hard_link(input, name);
  const auto messages = [&] {
    protect_inputs({{"--output", result}, {"--trace", folder.path() / "absent"}});
    if (!read_file(input, 4096_B)) return std::string("not read");
    std::string all;
    for (const fs::path& path : {input, link, name}) all += message_of(write_file(path, "x"));
    all += message_of(read_file(result, 4096_B));
    return all + message_of(write_file(result, "x"), "written");
  };
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string text = messages();
    ::_exit(::write(ends[1], text.data(), text.size()) < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::string text(4096, ' ');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(ends[0], text.data(), 4096), 0)));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  const std::string why = ": is a file that this command reads; give the result its own file";
  EXPECT_EQ(text, input.string() + why + input.string() + why + name.string() + why +
                      result.string() +
                      ": is to be read, but --output names it, too; give the result its own file" +
                      "written");
  EXPECT_EQ(*read_file(input, 4096_B), "old");
}

TEST(File, NamesWhereItCannotWrite) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of(write_file(folder.path() / "absent" / "a", "x")),
              Fails(Error::Code::kIo, HasSubstr("absent/a: cannot write: No such file")));
  EXPECT_THAT(write_file(folder.path(), "x").error().message, HasSubstr("cannot replace"));
}

}  // namespace
}  // namespace foreshard
