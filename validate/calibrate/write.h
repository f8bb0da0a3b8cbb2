/// \file
/// Fitted numbers as the YAML file that the simulator reads, and as text for people.
#pragma once

#include <string>

#include "validate/calibrate/collective_fit.h"

namespace foreshard::calibrate {

/// Content of configs/communication/NAME.yaml.
/// \param header  comment lines at the beginning of the file.
std::string to_yaml(const comm::Parameters& parameters, const std::string& header);

/// Every number with its 95 % interval.
std::string to_text(const Fit& fit);

}  // namespace foreshard::calibrate
