/// \file
/// The formats behind `formats()`, one file each, and what they share.
#pragma once

#include "strategies/launch/internal/format.h"

namespace foreshard::launch::internal {

const Format& accelerate_format();
const Format& deepspeed_format();
const Format& megatron_format();
const Format& megatron_bridge_format();
const Format& nemo_format();
const Format& torchtitan_format();
std::span<const Format* const> all_formats();

/// settings_yaml.cc: YAML and JSON.
Result<std::vector<Setting>> cut_yaml(std::string_view text, const std::string& name);
/// Whether a line of the text, not indented, begins with "key:".
bool has_top_key(std::string_view text, std::string_view key);
std::string print_yaml(const std::vector<Written>& settings);
std::string print_json(const std::vector<Written>& settings);
/// settings_toml.cc
Result<std::vector<Setting>> cut_toml(std::string_view text, const std::string& name);
std::string print_toml(const std::vector<Written>& settings);
/// settings_words.cc: a command line, or a shell script that holds one. Variables are replaced by
/// the values that the script gives them (NAME=8, ${NAME}, ${NAME:-8}, $((A * B))).
Result<std::vector<Setting>> cut_words(std::string_view text, const std::string& name);
std::string print_words(const std::vector<Written>& settings);

/// megatron_family.cc: the command line of Megatron-LM and the YAML of NeMo and Megatron-Bridge
/// configure the same program. Their rows make these notes:
///     devices; layout; first_layers, last_layers, embedding_is_layer, loss_is_layer;
///     virtual_stages, layers_per_chunk; distributed_optimizer, fsdp2, fsdp2_keeps, megatron_fsdp,
///     sharding; granularity, method, recompute_layers, recompute_modules; fp16, bf16,
///     accumulate_fp32, fp8, fp8_recipe; precision_aware, main_gradients; context_sizes;
///     pipeline_before_data; blocking_transfers; attention_dropout, hidden_dropout; grouped_query,
///     query_groups, groups_alone; moe_frequency; positions.
Status finish_megatron(Draft& draft, const Reading& reading);
void spread_megatron(Draft& draft, const Writing& writing);

/// fsdp_offload.cc: FSDP offloads parameters, gradients and states together (PyTorch:
/// CPUOffloadPolicy); the note "cpu_offload" stands for all three.
Status finish_fsdp_offload(Draft& draft);
void spread_fsdp_offload(Draft& draft, const Strategy& strategy);

}  // namespace foreshard::launch::internal
