#include "validate/tables/row_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

namespace foreshard::accuracy {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_letter_or_digit(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    if (!is_letter_or_digit(text[begin])) continue;
    std::size_t end = begin;
    while (end < text.size() && (is_letter_or_digit(text[end]) || text[end] == '_')) ++end;
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

// NCCL_ALGO's name -> ours. The protocols have the names of NCCL_PROTO.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kAlgorithms{
    {{"Ring", "ring"},
     {"Tree", "tree"},
     {"NVLS", "nvls"},
     {"NVLSTree", "nvls_tree"},
     {"NVLS_TREE", "nvls_tree"},
     {"CollNetChain", "collnet_chain"},
     {"CollNetDirect", "collnet_direct"},
     {"PAT", "pat"}}};
constexpr std::array<std::string_view, 3> kProtocols{"LL", "LL128", "Simple"};
constexpr std::array<std::string_view, 5> kNotForced{"default", "auto", "tuner", "picks", "off"};
constexpr std::array<std::string_view, 5> kNvlsOff{"NVLS off", "no NVLS", "NVLS disabled",
                                                   "without NVLS", "NCCL_NVLS_ENABLE=0"};

bool equal_but_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

std::optional<StatedAdapters> stated_adapters(std::string_view network) {
  for (std::size_t x = network.find('x'); x != std::string_view::npos;
       x = network.find('x', x + 1)) {
    std::size_t begin = x;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(network[begin - 1])) != 0) --begin;
    StatedAdapters stated;
    double gigabits = 0;
    const char* const end = network.data() + network.size();
    if (std::from_chars(network.data() + begin, network.data() + x, stated.count).ec != std::errc{})
      continue;
    const auto [after, fault] = std::from_chars(network.data() + x + 1, end, gigabits);
    if (fault != std::errc{} || after == end || *after != 'G' || stated.count < 1 ||
        !(gigabits > 0))
      continue;
    const std::string_view rest(after, static_cast<std::size_t>(end - after));
    stated.rate = gigabits * 1_Gbit_s;
    stated.per_gpu = has(rest.substr(0, rest.find_first_of(",;")), "per GPU");
    return stated;
  }
  return std::nullopt;
}

std::string stated_transport(std::string_view words, std::string_view generation) {
  if (has(words, "TCPXO") || has(words, "FasTrak")) return "gpudirect-tcpxo";
  if (has(words, "EFA"))
    return generation == "Ampere" || generation == "Volta" ? "efa" : "efa-rdma";
  if (has(words, "Slingshot"))
    return has(words, "software matching") ? "slingshot-software-matching" : "slingshot";
  if (has(words, "RoCE")) return "roce";
  if (has(words, "Omni-Path")) return "omnipath";
  if (has(words, "sockets")) return "ethernet-sockets";
  return {};
}

bool stated_no_nvlink(std::string_view intra_link) {
  return has(intra_link, "PCIe") && (!has(intra_link, "NVLink") || has(intra_link, "no NVLink"));
}

std::optional<bool> stated_peer_to_peer(std::string_view intra_link) {
  for (const std::string_view host : {"SHM", "shared memory", "P2P off", "P2P disabled", "no P2P"})
    if (has(intra_link, host)) return false;
  for (const std::string_view peer : {"P2P", "peer-to-peer"})
    if (has(intra_link, peer)) return true;
  return std::nullopt;
}

StatedForms stated_forms(std::string_view hint, std::string_view notes) {
  StatedForms forms;
  for (const std::string_view off : kNvlsOff)
    if (has(hint, off) || has(notes, off)) forms.nvls = false;
  const auto words = words_in(hint);
  for (const std::string_view word : words)
    for (const std::string_view none : kNotForced)
      if (equal_but_case(word, none)) return forms;
  for (const std::string_view word : words) {
    for (const auto& [name, algorithm] : kAlgorithms)
      if (equal_but_case(word, name)) forms.algorithms.emplace_back(algorithm);
    for (const std::string_view protocol : kProtocols)
      if (equal_but_case(word, protocol)) forms.protocols.emplace_back(protocol);
  }
  // On several nodes NCCL runs NVLS as NVLSTree, unless switches of the network do the additions.
  if (std::ranges::find(forms.algorithms, "nvls") != forms.algorithms.end())
    forms.algorithms.emplace_back("nvls_tree");
  return forms;
}

Seconds stated_overhead(std::string_view notes) {
  // An operation of 32 KiB on eight A100 takes 43.8 us in such a loop and 26 us in nccl-tests.
  // Source: stas00/ml-engineering, ai-dynamo/aiconfigurator.
  constexpr Seconds kOfCall = 20_us;
  const bool is_loop = has(notes, "all_reduce_bench") || has(notes, "torch.distributed");
  return is_loop && !has(notes, "kernel time") && !has(notes, "profiler") ? kOfCall : 0_s;
}

}  // namespace foreshard::accuracy
