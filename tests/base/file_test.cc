#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "tests/base/temporary_folder.h"
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

TEST(File, NamesWhereItCannotWrite) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of(write_file(folder.path() / "absent" / "a", "x")),
              Fails(Error::Code::kIo, HasSubstr("absent/a: cannot write: No such file")));
  EXPECT_THAT(write_file(folder.path(), "x").error().message, HasSubstr("cannot replace"));
}

}  // namespace
}  // namespace foreshard
