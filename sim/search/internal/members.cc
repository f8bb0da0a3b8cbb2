#include "sim/search/internal/members.h"

#include <algorithm>
#include <utility>

namespace foreshard::search {

Members::Members(const Shared& shared) : shared_(shared), bound_(shared.strategy, shared.forms) {
  for (std::int32_t block = 0; block < static_cast<std::int32_t>(kBlocks); ++block)
    if (is_again(block)) again_.push_back(block);
  for (std::size_t block = 0; shared.again != nullptr && block < shared.again->blocks(); ++block)
    bytes_.push_back(shared.again->bytes(block));
  add_loads();
}

void Members::add_loads() {
  std::array<BlockBytes, kBlocks> others = shared_.layout.bytes();
  for (const std::int32_t block : again_) {
    BlockBytes& own = others[static_cast<std::size_t>(block)];
    own = {.whole = own.whole, .gradient = own.gradient};
  }
  const auto covers = [](const AgainLoad& a, const AgainLoad& b) {
    return a.pass == b.pass && (!b.trails || (a.trails && a.before == b.before)) &&
           a.fixed.most >= b.fixed.most && a.fixed.least >= b.fixed.least &&
           std::ranges::equal(a.kept, b.kept, std::greater_equal()) &&
           std::ranges::equal(a.held, b.held, std::greater_equal());
  };
  for (std::size_t c = 0; c < shared_.stages.size(); ++c) {
    auto& of_class = loads_.emplace_back();
    for (const FilledForm& form : shared_.forms.forms) {
      std::vector<AgainLoad>& found = of_class.emplace_back();
      for (const Load& load : form.loads(c)) {
        AgainLoad own{.fixed = search::live_of(load, others),
                      .rests = rests_on_others(load),
                      .pass = load.pass,
                      .before = load.before,
                      .trails = load.trails};
        for (const std::int32_t block : again_) {
          const auto b = static_cast<std::size_t>(block);
          own.kept[b] = load.kept[b];
          own.held[b] = load.held[b];
        }
        if (std::ranges::any_of(found, [&](const AgainLoad& other) { return covers(other, own); }))
          continue;
        std::erase_if(found, [&](const AgainLoad& other) { return covers(own, other); });
        found.push_back(own);
      }
    }
  }
}

Status Members::find_times() {
  if (!forms_.empty()) return {};
  for (const StageClass& one : shared_.forms.classes()) {
    FORESHARD_ASSIGN(const ModelTimes* const plain, shared_.layout.passes(one.devices));
    passes_.push_back(by_block(*plain));
    if (again_.empty()) continue;
    FORESHARD_ASSIGN(const auto ways, shared_.again->passes(shared_.layout, one.devices));
    ways_.push_back(ways);
  }
  for (Layout::Stage* const stage : shared_.stages)
    optimizer_.push_back(shared_.layout.optimizer_kernels(*stage).fastest);
  FORESHARD_ASSIGN(data_,
                   data_stream(shared_.strategy, shared_.forms, shared_.layout, shared_.stages));
  FORESHARD_ASSIGN(ways_there_, shared_.layout.least_ways());
  const Framework& framework = *shared_.strategy.framework;
  for (FilledForm& form : shared_.forms.forms) {
    TimedForm& timed = forms_.emplace_back(TimedForm{.form = &form, .symbols = form.symbols()});
    for (std::size_t i = 0; i < timed.symbols.size(); ++i) {
      const Symbol& symbol = timed.symbols[i];
      const auto of_class = static_cast<std::size_t>(symbol.role);
      if (symbol.kind == Symbol::Kind::kPass) {
        const bool varies = symbol.direction == Direction::kBackward &&
                            std::ranges::any_of(again_, [&](std::int32_t block) {
                              return symbol.units[static_cast<std::size_t>(block)] > 0;
                            });
        if (varies) timed.varying.push_back(i);
        timed.durations.push_back(
            pass_time_of(symbol, passes_[of_class], framework, launching(symbol)).in_base());
        continue;
      }
      FORESHARD_ASSIGN(
          const auto time,
          shared_.layout.time_of(symbol, symbol.role < 0 ? nullptr : shared_.stages[of_class]));
      timed.durations.push_back(time.in_base());
    }
    add_paths(timed);
  }
  return {};
}

void Members::add_paths(TimedForm& form) {
  const auto paths = form.form->paths();
  const std::size_t size = form.symbols.size();
  for (; form.paths < paths.size() / size; ++form.paths) {
    const auto path = paths.subspan(form.paths * size, size);
    double fixed = 0;
    for (std::size_t i = 0; i < size; ++i) fixed += path[i] * form.durations[i];
    for (const std::size_t i : form.varying) {
      fixed -= path[i] * form.durations[i];
      form.counts.push_back(path[i]);
    }
    form.fixed.push_back(fixed);
  }
}

// \param bytes_of  function: block of the plan -> bytes.
template <class BytesOf>
LiveBytes Members::live_of(const AgainLoad& load, BytesOf bytes_of) const {
  Bytes again;
  for (const std::int32_t block : again_) {
    const BlockBytes& own = bytes_of(block);
    const auto b = static_cast<std::size_t>(block);
    again +=
        static_cast<double>(load.kept[b]) * own.kept + static_cast<double>(load.held[b]) * own.held;
  }
  if (is_again(load.pass.block)) again += bytes_of(load.pass.block).work[load.pass.form()];
  LiveBytes live{.most = load.fixed.most + again, .least = load.fixed.least + again};
  if (load.trails && is_again(load.before.block))
    live.most += bytes_trailing(load.before, bytes_of(load.before.block));
  return live;
}

// \param is_certain  function: whether a load of a class is live at once, whatever hosts do.
template <class IsCertain>
Estimate Members::memory(std::size_t way, IsCertain is_certain) const {
  return memory_of(shared_.stages, shared_.forms, [&](std::size_t c) {
    std::array<LiveBytes, 2> lives{};
    for (std::size_t form = 0; form < loads_[c].size(); ++form)
      for (const AgainLoad& load : loads_[c][form]) {
        LiveBytes live = live_of(
            load, [&](std::int32_t block) -> const BlockBytes& { return bytes(block, way); });
        if (is_certain(c, load)) live.least = live.most;
        lives[form].include(live);
      }
    return shared_.forms.of(shared_.strategy.micro_batches(),
                            std::span<const LiveBytes>(lives).first(loads_[c].size()));
  });
}

Estimate Members::memory(std::size_t way) const {
  return memory(way, [](std::size_t, const AgainLoad&) { return false; });
}

Estimate Members::memory_as_launched(std::size_t way) const {
  return memory(way, [&](std::size_t c, const AgainLoad& load) {
    const Seconds launch = shared_.layout.launching(shared_.forms.classes()[c].devices);
    return is_certain(load.pass, load.before, load.rests, passes_[c], launch);
  });
}

// Neither of two forms needs more than the whole step, because more micro-batches need no less.
Estimate Members::least_memory(std::span<const BlockBytes> bytes) const {
  return memory_of(shared_.stages, shared_.forms, [&](std::size_t c) {
    LiveBytes most;
    for (const std::vector<AgainLoad>& of_form : loads_[c])
      for (const AgainLoad& load : of_form)
        most.include(live_of(load, [&](std::int32_t block) -> const BlockBytes& {
          const auto b = static_cast<std::size_t>(block);
          return bytes[static_cast<std::size_t>(shared_.index_of_block[b])];
        }));
    return most;
  });
}

Seconds Members::bound(std::size_t way) {
  for (std::size_t c = 0; c < ways_.size(); ++c)
    for (const std::int32_t block : again_) {
      const auto b = static_cast<std::size_t>(block);
      const auto index = static_cast<std::size_t>(shared_.index_of_block[b]);
      passes_[c][b] = &ways_[c][index * shared_.again->ways() + way];
    }
  return bound_.of(passes_, optimizer_, data_, *ways_there_);
}

Seconds Members::launching(const Symbol& symbol) const {
  const auto of_class = static_cast<std::size_t>(symbol.role);
  return shared_.layout.launching(shared_.forms.classes()[of_class].devices);
}

Seconds Members::bound_of_paths() const {
  return bound_.of_paths(*forms_.front().form, passes_, data_);
}

Seconds Members::step() {
  std::array<Seconds, 2> steps{};
  const Framework& framework = *shared_.strategy.framework;
  for (std::size_t f = 0; f < forms_.size(); ++f) {
    TimedForm& form = forms_[f];
    for (const std::size_t i : form.varying)
      form.durations[i] =
          pass_time_of(form.symbols[i], passes_[static_cast<std::size_t>(form.symbols[i].role)],
                       framework, launching(form.symbols[i]))
              .in_base();
    if (form.form->is_walk_due(shared_.layout)) {
      steps[f] = form.form->walk(form.durations, shared_.layout);
      add_paths(form);
      continue;
    }
    const std::size_t varying = form.varying.size();
    double longest = 0;
    for (std::size_t path = 0; path < form.paths; ++path) {
      double length = form.fixed[path];
      for (std::size_t i = 0; i < varying; ++i)
        length += form.counts[path * varying + i] * form.durations[form.varying[i]];
      longest = std::max(longest, length);
    }
    steps[f] = Seconds::from_base(longest);
  }
  return shared_.forms.of(shared_.strategy.micro_batches(),
                          std::span<const Seconds>(steps).first(forms_.size()));
}

}  // namespace foreshard::search
