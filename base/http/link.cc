#include "base/http/link.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/random.h>

namespace foreshard::http {
namespace {

constexpr std::string_view kScheme = "http://";

// Compares all of two texts of one length, so that its time tells nothing.
bool same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

}  // namespace

Result<Link> Link::of(std::uint16_t port) {
  std::array<unsigned char, 16> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    return Error{Error::Code::kIo,
                 fmt::format("no random numbers for the link's token: {}", std::strerror(errno))};
  Link link;
  for (const unsigned char byte : random) link.token_ += fmt::format("{:02x}", byte);
  link.port_ = std::to_string(port);
  link.text_ = fmt::format("{}127.0.0.1:{}/{}/", kScheme, link.port_, link.token_);
  return link;
}

std::optional<std::string> Link::below_token(std::string_view path) const {
  const std::size_t end = token_.size() + 1;
  if (path.size() <= end || path[0] != '/' || path[end] != '/') return std::nullopt;
  if (!same(path.substr(1, token_.size()), token_)) return std::nullopt;
  return std::string(path.substr(end + 1));
}

bool Link::is_host(std::string_view host) const {
  return host == "127.0.0.1:" + port_ || host == "localhost:" + port_;
}

bool Link::is_origin(std::string_view origin) const {
  return origin.starts_with(kScheme) && is_host(origin.substr(kScheme.size()));
}

}  // namespace foreshard::http
