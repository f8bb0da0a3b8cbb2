/// \file
/// Advice as text for people and as JSON (schema foreshard.advice/1).
#pragma once

#include <string>

#include "base/page.h"
#include "base/record/forward.h"

#include "sim/advise/advise.h"

namespace foreshard::advise {

const record::Record<Advice>& record_of(const Advice*);

std::string advice_text(const Advice& advice, const Paper& paper = {});
std::string advice_json(const Advice& advice);

/// The change as options that any command with a study takes: "--set strategy.recompute=selective".
std::string options_of(const Change& change);

}  // namespace foreshard::advise
