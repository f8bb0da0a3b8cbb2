#include "strategies/checkpoint/files.h"

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

namespace foreshard::checkpoint::files_test {

// FIPS 180-2, appendix B: the digests of nothing and of "abc". The buffer's size does not matter.
TEST(CheckpointFiles, HaveDigests) {
  const TemporaryFolder folder;
  const auto abc = folder.write("abc", "abc");
  const auto empty = folder.write("empty", "");
  for (const std::size_t size : {1, 2, 3, 100}) {
    std::vector<char> buffer(size);
    std::int64_t bytes = 0;
    const auto progress = [&](std::int64_t piece) { bytes += piece; };
    EXPECT_EQ(value_of(digest_of(abc, buffer, progress)),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(bytes, 3);
    EXPECT_EQ(value_of(digest_of(empty, buffer, {})),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  }
}

TEST(CheckpointFiles, NeedABufferForDigests) {
  const TemporaryFolder folder;
  const auto abc = folder.write("abc", "abc");
  EXPECT_DEATH((void)digest_of(abc, {}, {}), "buffer");
}

TEST(CheckpointFiles, MustBeThereAndRegular) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of(InputFile::open(folder.path() / "none")), HasSubstr("none: is missing"));
  EXPECT_THAT(message_of(InputFile::open(folder.path())), HasSubstr("is not a regular file"));
}

// Ten bytes more than the file has.
TEST(CheckpointFiles, MayNotShrinkWhileTheyAreRead) {
  const TemporaryFolder folder;
  const auto file = value_of(InputFile::open(folder.write("abc", "abc")));
  std::vector<char> buffer(13);
  EXPECT_THAT(message_of(file.read(0, buffer)),
              HasSubstr("ends at byte 3, although it had 3 bytes when it was opened"));
}

}  // namespace foreshard::checkpoint::files_test
