/// \file
/// Devices of one kind are not equally fast: under one power limit, chips that leak more run at
/// lower clocks. A training step waits for the slowest of its devices, again and again: tensor-
/// parallel ranks at each collective, stages at each hand-over, data-parallel ranks at the end.
/// Each device that a job uses is therefore given the expected clocks of the slowest device of its
/// kind among those used; devices that the job does not use do not matter:
///
///     sustained rate = mean sustained rate * (1 - clock_spread * z(n))
///
/// where the rates are those of products and attention (`sustained` of DeviceEfficiency::gemm and
/// attention, a share of the peak), clock_spread is the standard deviation of one device as a share
/// of the mean, and z(n) is the expected largest of n normal values with mean 0 and deviation 1,
/// for n devices of the kind.
/// Source of z: Blom, "Statistical Estimates and Transformed Beta-Variables" (1958): the quantile
/// of (n - 0.375) / (n + 0.25); within 0.03 of the exact values.
///
/// Simulations of a study and a search's estimates use this (sim/study/run.cc,
/// sim/search/robustness.cc). A search's estimates take the slowest of all devices, even where a
/// strategy leaves some idle; its lower bounds take the slowest of the devices that the strategy
/// uses (RankDevices::clock_ratio).
///
/// Not modelled: slow devices placed where there is little work; temperatures within a rack; passes
/// over memory, which hardly differ from device to device. Kernels that an efficiency lists as
/// measured keep their times.
#pragma once

#include <cstdint>
#include <span>

#include "topology/cluster_config.h"
#include "topology/device_type.h"

namespace foreshard {

/// z(n): 0 for one device, 1.43 for 8, 3.23 for 1,024.
/// \pre devices >= 1
double deviations_of_slowest(std::int64_t devices);

/// Sustained rate of the slowest of `devices` devices of that type, as a share of the mean rate.
/// \pre devices >= 1
double share_of_slowest(const DeviceType& type, std::int64_t devices);

/// `type` with the expected sustained rates of the slowest of `devices` devices.
/// \pre devices >= 1
DeviceType slowest_of(DeviceType type, std::int64_t devices);

/// `cluster` with each kind of device at the expected sustained rates of the slowest used device of
/// that kind. A kind with one used device, or none, stays as it is.
/// \param used  indices of devices, in the cluster's order.
ClusterConfig at_clocks_of_slowest(ClusterConfig cluster, std::span<const std::int32_t> used);

}  // namespace foreshard
