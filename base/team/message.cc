// Sending and receiving the messages of message.h. Rank 0 (desk.cc), the other ranks of a team,
// and the sweeps and searches that they run exchange tasks and answers with them.
#include "base/team/message.h"

#include <cstdint>

#include "base/net/socket.h"

namespace foreshard::team {
namespace {

constexpr std::size_t kSize = 4;  // Bytes of a size.

void put(std::string& out, std::size_t size) {
  for (std::size_t i = 0; i < kSize; ++i) out += static_cast<char>((size >> (8 * i)) & 0xff);
}

std::size_t size_in(std::string_view bytes) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < kSize; ++i)
    size |= std::size_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return size;
}

}  // namespace

std::string encode(const Words& words) {
  std::string body;
  for (const std::string& word : words) {
    put(body, word.size());
    body += word;
  }
  std::string out;
  put(out, body.size());
  return out + body;
}

std::optional<Words> decode(std::string_view bytes) {
  Words words;
  while (!bytes.empty()) {
    if (bytes.size() < kSize) return std::nullopt;
    const std::size_t size = size_in(bytes);
    bytes.remove_prefix(kSize);
    if (bytes.size() < size) return std::nullopt;
    words.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return words;
}

bool send(int socket, const Words& words) {
  return net::send_all(socket, encode(words));
}

std::optional<Words> receive(int socket, std::size_t largest) {
  std::string head;
  if (!net::receive_all(socket, kSize, head)) return std::nullopt;
  const std::size_t size = size_in(head);
  std::string body;
  if (size > largest || !net::receive_all(socket, size, body)) return std::nullopt;
  return decode(body);
}

}  // namespace foreshard::team
