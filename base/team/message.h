/// \file
/// Messages between the ranks of a team. A message is the size of the rest and then words; a word
/// is its size and then its bytes. Sizes have 4 bytes, little endian.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard::team {

using Words = std::vector<std::string>;

/// Larger messages are refused. Peers that have not yet said hello may send only small ones.
inline constexpr std::size_t kLargestMessage = std::size_t{16} << 20;
inline constexpr std::size_t kLargestHello = 4096;

std::string encode(const Words& words);
/// The words of a message without its leading size. Nothing if sizes do not add up.
std::optional<Words> decode(std::string_view bytes);

/// \return false where the peer is gone.
bool send(int socket, const Words& words);
/// \return nothing where the peer is gone, or does not send a message of at most `largest` bytes.
std::optional<Words> receive(int socket, std::size_t largest = kLargestMessage);

}  // namespace foreshard::team
