/// \file
/// The inputs of a study, value by value, so that two studies can be compared.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/study/study.h"

namespace foreshard::study {

/// Key ("cluster.node.nics.bandwidth") -> value as text. Keys that do not enter the computation
/// (sources, evidence, descriptions, names of files) are left out. A graph's file appears as its
/// digest, its `dims` as the shapes of its inputs, and `use` as device numbers.
std::map<std::string, std::string> inputs_of(const LoadedStudy& study);

struct InputDifference {
  std::string key;
  std::string a;  ///< Value on side A; empty: the study does not have the key.
  std::string b;
};
/// The differences, sorted by key. If two clusters have devices of different names, or two studies
/// have models, frameworks or communication libraries of different names, the name stands for
/// everything inside.
std::vector<InputDifference> differences(const LoadedStudy& a, const LoadedStudy& b);

}  // namespace foreshard::study
