#include "base/net/rank_zero.h"

#include <array>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace foreshard::net {

std::string RankZero::address() const {
  return host.empty() || host == own_name() ? kLoopback : host;
}

std::string own_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

Status write_rank_zero(const std::filesystem::path& file, const RankZero& place) {
  const std::string host = place.host.empty() ? "" : " " + place.host;
  return write_file(file, std::to_string(place.port) + host + "\n");
}

std::optional<RankZero> rank_zero_in(const std::filesystem::path& file) {
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::getuid())
    return std::nullopt;
  const auto text = read_file(file, 512_B);
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  int port = 0;
  RankZero place;
  words >> port >> place.host;
  if (port < 1 || port > 65535) return std::nullopt;
  place.port = static_cast<std::uint16_t>(port);
  return place;
}

}  // namespace foreshard::net
