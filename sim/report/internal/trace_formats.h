// The formats of traces: a function for each, and its line in the table of trace.cc.
#pragma once

#include <string>

#include "base/gzip/gzip.h"
#include "base/result.h"

#include "sim/simulate/prediction.h"
#include "strategies/program/ir/program.h"

namespace foreshard::report {

// "stage 0: rank 0 and 3 like it"
std::string name_of_class(const sim::DeviceClass& one);

Status write_json_trace(NewFileByName& file, const sim::Prediction& prediction,
                        const program::Program& program);
Status write_perfetto_trace(NewFileByName& file, const sim::Prediction& prediction,
                            const program::Program& program);

}  // namespace foreshard::report
