/// \file
/// Names of base/record/record.h, for headers that declare the record of a type.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace foreshard::record {

using Json = nlohmann::ordered_json;

template <class T>
class Record;

}  // namespace foreshard::record
