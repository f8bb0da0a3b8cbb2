#include "base/digest/sha256.h"

#include "tests/test.h"

namespace foreshard {
namespace {

// Source: FIPS 180-2, appendix B.1 and B.3, and the digest of nothing.
TEST(Sha256, MatchesThePublishedVectors) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, TakesBytesInPieces) {
  Sha256 digest;
  for (const char* const piece : {"a", "", "bc"}) digest.update(piece);
  EXPECT_EQ(digest.finish(), sha256("abc"));
}

}  // namespace
}  // namespace foreshard
