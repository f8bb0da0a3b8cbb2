#include <cmath>
#include <fmt/format.h>

#include "base/quantity.h"
#include "base/text.h"

#include "validate/calibrate/collective_fit.h"

namespace foreshard::calibrate {
namespace {

std::string micro(Seconds time) {
  return fmt::format("{:.4g} us", time.in_base() * 1e6);
}
std::string kibi(Bytes bytes) {
  return fmt::format("{:.4g} KiB", bytes.in_base() / 1024);
}
// Format for sizes that are not fitted.
std::string all_digits(Bytes bytes) {
  return fmt::format("{:.10g} KiB", bytes.in_base() / 1024);
}
std::string giga(BytesPerSecond rate) {
  return fmt::format("{:.4g} GB/s", rate.in_base() / 1e9);
}
std::string part(double value) {
  return fmt::format("{:.4g}", std::min(1.0, value));
}

std::string text_of(const comm::FormParameters& form) {
  std::string text = fmt::format("  - algorithm: {}\n", form.algorithm);
  if (!form.architectures.empty())
    text += fmt::format("    architectures: [{}]\n", join(form.architectures));
  if (!form.operations.empty())
    text += fmt::format("    operations: [{}]\n", join(form.operations));
  if (form.on_request) text += "    on_request: true\n";
  text += fmt::format("    protocol: {}\n    base: {}\n", yaml::name_of(form.protocol),
                      micro(form.base));
  if (form.network_base > 0_s)
    text += fmt::format("    network_base: {}\n", micro(form.network_base));
  text += fmt::format("    hop: {{nvlink: {}, ", micro(form.hop.nvlink));
  if (form.hop.pcie) text += fmt::format("pcie: {}, ", micro(*form.hop.pcie));
  text += fmt::format("network: {}", micro(form.hop.network));
  if (form.hop.network_empty)
    text += fmt::format(", network_empty: {}", micro(*form.hop.network_empty));
  text += "}\n";
  text += fmt::format("    efficiency: {{nvlink: {}, pcie: {}, ", part(form.efficiency.nvlink),
                      part(form.efficiency.pcie));
  text += fmt::format("network: {}}}\n", part(form.efficiency.network));
  if (form.channels) text += fmt::format("    channels: {}\n", *form.channels);
  if (form.network_channels > 1)
    text += fmt::format("    network_channels: {}\n", form.network_channels);
  if (std::isfinite(form.network_channel_rate.in_base()))
    text += fmt::format("    network_channel_rate: {}\n", giga(form.network_channel_rate));
  if (std::isfinite(form.channel_rate.in_base()))
    text += fmt::format("    channel_rate: {}\n", giga(form.channel_rate));
  if (std::isfinite(form.host_rate.in_base()))
    text += fmt::format("    host_rate: {}\n", giga(form.host_rate));
  if (form.channel_bytes > 0_B)
    text += fmt::format("    channel_bytes: {}\n", kibi(form.channel_bytes));
  if (std::isfinite(form.largest_message.in_base()))
    text += fmt::format("    largest_message: {}\n", all_digits(form.largest_message));
  if (form.chunk > 0_B) text += fmt::format("    chunk: {}\n", all_digits(form.chunk));
  if (form.turnaround > 0) text += fmt::format("    turnaround: {:.3g}\n", form.turnaround);
  text += fmt::format("    source: \"{}\"\n", form.source);
  text += fmt::format("    evidence: {}\n", yaml::name_of(form.evidence));
  return text;
}

template <class T>
std::string sourced(const std::string& key, const std::string& value, const T& number) {
  return fmt::format("    {}: {{value: {}, source: \"{}\", evidence: {}}}\n", key, value,
                     number.source, yaml::name_of(number.evidence));
}

std::string text_of(const TransportNumbers& transport) {
  const auto& [name, latency, rendezvous, eager_limit, efficiency, inject, limit] = transport;
  std::string text = fmt::format("  - name: {}\n", name) +
                     sourced("latency", micro(*latency), latency) +
                     sourced("rendezvous", micro(*rendezvous), rendezvous) +
                     sourced("eager_limit", kibi(*eager_limit), eager_limit) +
                     sourced("exchange_efficiency", part(*efficiency), efficiency);
  if (*limit > 0_B)
    text += sourced("inject", micro(*inject), inject) +
            sourced("inject_limit", all_digits(*limit), limit);
  return text;
}

std::string text_of(const comm::AlgorithmOverride& choice) {
  std::string text =
      fmt::format("  - {{operation: {}, algorithm: {}", choice.operation, choice.algorithm);
  if (choice.protocol) text += fmt::format(", protocol: {}", yaml::name_of(*choice.protocol));
  if (choice.channels) text += fmt::format(", channels: {}", *choice.channels);
  const auto limit = [&](const char* key, const auto& value) {
    if (value) text += fmt::format(", {}: {}", key, *value);
  };
  if (choice.from_bytes) text += ", from_bytes: " + format_exact(*choice.from_bytes);
  if (choice.to_bytes) text += ", to_bytes: " + format_exact(*choice.to_bytes);
  limit("from_ranks", choice.from_ranks);
  limit("to_ranks", choice.to_ranks);
  limit("from_nodes", choice.from_nodes);
  limit("to_nodes", choice.to_nodes);
  return text + "}\n";
}

}  // namespace

std::string to_yaml(const comm::Parameters& parameters, const std::string& header) {
  std::string text = header + fmt::format("name: {}\n", parameters.name);
  if (parameters.nccl) text += fmt::format("nccl: {}\n", parameters.nccl->name);
  text += fmt::format("tuner: {}\nforms:\n", yaml::name_of(parameters.tuner));
  for (const auto& form : parameters.forms) text += text_of(form);
  if (!parameters.transports.empty()) text += "transports:\n";
  for (const auto& transport : parameters.transports) text += text_of(transport);
  if (!parameters.choices.empty()) text += "choices:\n";
  for (const auto& choice : parameters.choices) text += text_of(choice);
  return text;
}

std::string to_text(const Fit& fit, const Paper& paper) {
  Page page(paper);
  page.line(fmt::format("{} iterations, cost {:.5g} -> {:.5g}", fit.iterations, fit.cost_before,
                        fit.cost_after));
  TextTable table({"<of", "<number", ">value", "<95 % interval"});
  for (const FittedNumber& one : fit.numbers)
    table.row(one.generation.empty() ? "all" : one.generation, one.name,
              fmt::format("{:.4g}", one.value), fmt::format("{:.4g} .. {:.4g}", one.low, one.high));
  page.table(table);
  return std::move(page).take();
}

}  // namespace foreshard::calibrate
