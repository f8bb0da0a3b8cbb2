#include "base/digest/base64.h"

#include <limits>
#include <openssl/evp.h>

#include "base/check.h"

namespace foreshard {

std::string base64(std::string_view bytes) {
  FORESHARD_CHECK(bytes.size() < std::numeric_limits<int>::max() / 2);
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // OpenSSL ends it with a zero.
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t digits = text.find_last_not_of('=') + 1;  // 0: there is none
  const std::size_t padding = text.size() - digits;
  if (text.size() % 4 != 0 || padding > 2 || text.size() >= std::numeric_limits<int>::max() ||
      text.substr(0, digits).find_first_not_of(kDigits) != text.npos)
    return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                     reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()));
  if (length < 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(length) - padding);  // OpenSSL gives zeros for it.
  return bytes;
}

}  // namespace foreshard
