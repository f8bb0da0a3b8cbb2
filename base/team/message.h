/// \file
/// Messages between the ranks of a team: some words, each a size (4 bytes, little endian) and that
/// many bytes, with the size of all of it before them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard::team {

using Words = std::vector<std::string>;

/// Larger messages are not taken; of strangers, who have not said hello, only small ones are.
inline constexpr std::size_t kLargestMessage = std::size_t{16} << 20;
inline constexpr std::size_t kLargestHello = 4096;

std::string encode(const Words& words);
/// Without the size of all of it. Nothing if sizes do not add up.
std::optional<Words> decode(std::string_view bytes);

/// \return false where the peer is gone.
bool send(int socket, const Words& words);
/// \return nothing where the peer is gone, or what it says is no message of at most `largest`.
std::optional<Words> receive(int socket, std::size_t largest = kLargestMessage);

}  // namespace foreshard::team
