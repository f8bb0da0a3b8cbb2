#include "base/gzip/gzip.h"

#include <cstdint>
#include <zlib.h>

#include "tests/test.h"

namespace foreshard::gzip_test {

// printf abc | gzip -n: header, "abc" in a fixed block, CRC-32 0x352441c2, length 3.
std::string compressed() {
  constexpr unsigned char kBytes[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00,
                                      0x00, 0x03, 0x4b, 0x4c, 0x4a, 0x06, 0x00, 0xc2,
                                      0x41, 0x24, 0x35, 0x03, 0x00, 0x00, 0x00};
  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};
}

std::string fault(const std::string& bytes, Bytes largest = 1_MiB) {
  return message_of(gunzip(bytes, "trace.gz", largest));
}

TEST(Gunzip, GivesWhatWasCompressed) {
  ASSERT_TRUE(is_gzip(compressed()));
  EXPECT_EQ(value_of(gunzip(compressed(), "trace.gz", 1_MiB)), "abc");
}

TEST(Gunzip, ReadsMembersOneAfterAnother) {
  EXPECT_EQ(value_of(gunzip(compressed() + compressed(), "trace.gz", 1_MiB)), "abcabc");
}

TEST(Gunzip, NamesTheFault) {
  EXPECT_FALSE(is_gzip("{\"traceEvents\": []}"));
  EXPECT_THAT(fault("{}"), HasSubstr("trace.gz: is not compressed by gzip"));
  for (std::size_t length = 2; length < compressed().size(); ++length)
    EXPECT_THAT(fault(compressed().substr(0, length)), HasSubstr("trace.gz: ends before"))
        << length;
  std::string damaged = compressed();
  damaged[15] = 'x';  // of the CRC
  EXPECT_THAT(fault(damaged), HasSubstr("is damaged"));
  EXPECT_THAT(fault(compressed() + "rest"), HasSubstr("other bytes behind"));
  EXPECT_THAT(fault(compressed(), 2_B),
              HasSubstr("holds more than the limit of 2 B; FORESHARD_LIMITS=2"));
}

TEST(Gzip, PacksPiecesAsTheWhole) {
  const std::string text = std::string(100'000, 'a') + "b" + std::string(100'000, 'c');
  for (const std::size_t piece : {1UL, 7UL, 65'536UL, text.size()}) {
    Gzip packer;
    std::string packed;
    for (std::size_t at = 0; at < text.size(); at += piece)
      packed += packer.append(std::string_view(text).substr(at, piece));
    EXPECT_EQ(packed + packer.finish(), gzip(text)) << piece;
  }
  EXPECT_EQ(Gzip().finish(), gzip(""));
}

TEST(Gzip, IsReadBack) {
  std::uint32_t state = 1;
  std::string text;
  for (const std::size_t size : {0, 1, 3, 65536, 300'000}) {
    while (text.size() < size) {
      state = 1664525 * state + 1013904223;
      text += static_cast<char>(state >> 24);
    }
    EXPECT_EQ(value_of(gunzip(gzip(text), "x", 1_MiB)), text);
    EXPECT_EQ(gzip(text), gzip(text));
  }
}

// 100 MB of zeros; a gzip of some 97 kB.
TEST(Gunzip, RefusesABomb) {
  std::string bomb(200'000, '\0');
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string zeros;
  zeros.resize(100'000'000);
  stream.next_in = reinterpret_cast<Bytef*>(zeros.data());
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(bomb.data());
  stream.avail_out = static_cast<uInt>(bomb.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  bomb.resize(stream.total_out);
  deflateEnd(&stream);
  EXPECT_THAT(fault(bomb, 4_GiB), HasSubstr("trace.gz: unpacks to more than 200 times its"));
  EXPECT_THAT(fault(bomb, 1_MiB), HasSubstr("holds more than the limit of 1.00 MiB"));
}

}  // namespace foreshard::gzip_test
