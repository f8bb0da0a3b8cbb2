#include "base/digest/sha256.h"

#include <array>
#include <openssl/evp.h>

#include "base/check.h"

namespace foreshard {

namespace {

std::string hexadecimal(const std::array<unsigned char, EVP_MAX_MD_SIZE>& digest,
                        unsigned int size) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += kHex[digest[i] >> 4];
    text += kHex[digest[i] & 15];
  }
  return text;
}

}  // namespace

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  FORESHARD_CHECK(done == 1 && size == 32);
  return hexadecimal(digest, size);
}

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  FORESHARD_CHECK(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  FORESHARD_CHECK(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  FORESHARD_CHECK(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size) == 1);
  FORESHARD_CHECK(size == 32);
  return hexadecimal(digest, size);
}

}  // namespace foreshard
