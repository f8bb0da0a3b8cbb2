/// \file
/// What a study says, value by value, so that two studies can be put side by side.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/study/study.h"

namespace foreshard::study {

/// Key ("cluster.node.nics.bandwidth") -> value as text. Keys with which nothing is computed
/// (sources, evidence, descriptions, names of files) are left out. Of a graph's file the digest
/// stands there; its `dims` show as the shapes of its inputs; `use` as numbers of devices.
std::map<std::string, std::string> inputs_of(const LoadedStudy& study);

struct InputDifference {
  std::string key;
  std::string a;  ///< Empty where the study does not have it.
  std::string b;
};
/// By key. Where two clusters have devices, or studies models or communication libraries, of
/// different names, the name stands for all that is in them.
std::vector<InputDifference> differences(const LoadedStudy& a, const LoadedStudy& b);

}  // namespace foreshard::study
