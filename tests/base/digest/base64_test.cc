#include "base/digest/base64.h"

#include "tests/test.h"

namespace foreshard::base64_test {

// The test vectors of RFC 4648, section 10.
TEST(Base64, IsThatOfTheRfc) {
  for (const auto& [bytes, text] :
       std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                        {"f", "Zg=="},
                                                        {"fo", "Zm8="},
                                                        {"foo", "Zm9v"},
                                                        {"foob", "Zm9vYg=="},
                                                        {"fooba", "Zm9vYmE="},
                                                        {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, ReadsBackAnyBytes) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(from_base64(base64(bytes)), bytes);
    bytes += static_cast<char>(i * i);
  }
}

TEST(Base64, RefusesOtherTexts) {
  for (const char* text : {"Zg=", "Zg", "Z===", "====", "Zm9v\n", "Zm 9", "Zg==Zg==", "Zm9?"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

}  // namespace foreshard::base64_test
